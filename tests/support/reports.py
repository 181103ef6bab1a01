"""An evaluation with all kinds of results, and a check of HTML pages, for tests of reports."""

from html.parser import HTMLParser

import numpy as np

from twinvec.evaluation.result_file import Evaluation, score
from twinvec.evaluation.statistics import Outcome

SPEARMAN = "Spearman of cosine x 100, all pairs together"
VOID = {"meta", "br", "hr", "link", "img", "input"}


def outcomes(n=400, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    gold = np.random.default_rng(7).integers(0, 26, n) / 5
    predicted = (gold + noise * rng.standard_normal(n)).astype(np.float32)
    groups = np.arange(n) % 2
    right = (rng.random(n) < 0.8).astype(np.float64)
    return [
        Outcome("sts12", SPEARMAN, "spearman", predicted, gold, groups, ("news", "for<um>")),
        Outcome("flat", SPEARMAN, "spearman", np.ones(n), gold, groups, ("news", "for<um>")),
        Outcome("few", SPEARMAN, "spearman", predicted[:20], gold[:20]),
        Outcome("mr", "Accuracy x 100, logreg | 10-fold", "mean", right),
    ]


def evaluation(name="my <model>", **options):
    results = tuple(score(each) for each in outcomes(**options))
    versions = {"python": "3.12.1", "twinvec": "0.1.0"}
    return Evaluation(name, "model-abc", "2026-01-02T03:04:05Z", results, {"precision": "int8"}, versions)


class Checker(HTMLParser):
    """Records elements that are not closed, or closed twice."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"{tag} at {self.getpos()}")

    def handle_data(self, data):
        self.text.append(data)
