"""Semantic textual similarity: does the similarity of vectors agree with human scores?

SBERT (Reimers & Gurevych 2019, Table 1) and MTEB compute Spearman over all pairs of a year together; SentEval averages
the Pearson of the subsets. The two are not comparable, so every outcome states its protocol.

Trained relatedness (SentEval's STSb and SICK-R) fits a softmax over integer scores, on ``[|u - v|, u * v]``, after Tai
et al. (2015, sections 3.2 and 4.2): a score between two integers becomes probabilities of both, the model minimizes
the cross-entropy with them, and predicts the mean score. SentEval minimizes the squared error of the probabilities with
Adam and stops on dev; here the fit is exact, and dev chooses the L2 strength, by Pearson.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.choices import CORRELATIONS, Aggregation, Correlation, Similarity
from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import (
    Embed,
    check_choice,
    check_columns,
    check_finite,
    embed_once,
    features_of,
    numbered,
)
from twinvec.evaluation.tasks.logistic import fit_softmax
from twinvec.evaluation.tasks.transfer import SPLITS
from twinvec.metrics import pearson
from twinvec.types import Array, Vectors
from twinvec.vectors import PAIRWISE, similarity_pairwise

__all__ = ["RelatednessTask", "StsTask", "run_relatedness", "run_sts", "score_targets", "sts_outcomes"]

AGGREGATION_NAMES: dict[Aggregation, str] = {
    "all": "all pairs together",
    "mean": "mean of the subsets",
    "weighted mean": "mean of the subsets, weighted by their pairs",
}


@dataclass(frozen=True)
class StsTask:
    """Pairs of texts with human similarity scores; ``subsets`` has the subset of every pair, if there are subsets."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    gold: Sequence[float]
    subsets: Sequence[str] = ()

    def __post_init__(self) -> None:
        columns = {"left texts": self.left, "right texts": self.right, "gold scores": self.gold}
        if self.subsets:
            columns["subsets"] = self.subsets
        check_columns(self.name, columns, at_least=2)
        check_finite(self.name, self.gold, what="gold score")


def run_sts(
    task: StsTask,
    embed: Embed,
    *,
    statistic: Correlation = "spearman",
    similarity: Similarity = "cosine",
    aggregation: Aggregation = "all",
) -> list[Outcome]:
    """Return one outcome: the similarity and gold score of every pair, in the order of the task."""
    check_choice("statistic", statistic, known=CORRELATIONS)
    check_choice("similarity", similarity, known=PAIRWISE)
    check_choice("aggregation", aggregation, known=AGGREGATION_NAMES)
    left, right = embed_once(embed, task.left, task.right)
    scores = similarity_pairwise(left, right, similarity)
    return sts_outcomes(task, scores, of=similarity, statistic=statistic, aggregation=aggregation)


def sts_outcomes(
    task: StsTask, scores: Array, *, of: str, statistic: Correlation = "spearman", aggregation: Aggregation = "all"
) -> list[Outcome]:
    """Return the outcome of some system's scores, ``(pairs,)``; ``of`` names them in the protocol."""
    groups, names = numbered(task.subsets)
    return [
        Outcome(
            task=task.name,
            protocol=f"{statistic.capitalize()} of {of} x 100, {AGGREGATION_NAMES[aggregation]}",
            statistic=statistic,
            predicted=scores,
            gold=np.asarray(task.gold, dtype=np.float64),
            groups=np.array(groups) if groups else None,
            group_names=names,
            aggregation=aggregation,
        )
    ]


@dataclass(frozen=True)
class RelatednessTask:
    """Pairs with scores within ``bounds`` (low, high), each in one of the splits train, dev and test."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    gold: Sequence[float]
    splits: Sequence[str]
    bounds: tuple[int, int] = (0, 5)

    def __post_init__(self) -> None:
        columns = {"left texts": self.left, "right texts": self.right, "gold": self.gold, "splits": self.splits}
        check_columns(self.name, columns, at_least=2)
        check_finite(self.name, self.gold, what="gold score")
        low, high = self.bounds
        for row, score in enumerate(self.gold):
            if not low <= score <= high:
                raise InputError(f"{self.name}, row {row}: the score {score:g} is not from {low} to {high}.")
        if set(self.splits) != set(SPLITS):
            splits = ", ".join(sorted(set(self.splits)))
            raise InputError(f"{self.name}: the splits are {splits}.", hint="Provide train, dev and test.")


def run_relatedness(task: RelatednessTask, embed: Embed) -> list[Outcome]:
    """Return two outcomes on the test pairs: Pearson and Spearman of the predicted scores."""
    features, gold = features_of(embed, task.left, others=task.right), np.asarray(task.gold, dtype=np.float64)
    train, dev, test = (np.flatnonzero(np.array(task.splits) == split) for split in SPLITS)
    models = fit_softmax(features[train], score_targets(gold[train], task.bounds))
    steps = np.arange(task.bounds[0], task.bounds[1] + 1)
    agreement = [_agreement(scores, gold[dev]) for scores in models.probabilities(features[dev]) @ steps]
    predicted = (models.probabilities(features[test]) @ steps)[int(np.argmax(agreement))]
    how = "trained softmax over the scores on [|u-v|, u*v], L2 chosen by Pearson on dev, test pairs"
    return [
        Outcome(task.name, f"{name.capitalize()} x 100, {how}", statistic=name, predicted=predicted, gold=gold[test])
        for name in ("pearson", "spearman")
    ]


def score_targets(scores: Array, bounds: tuple[int, int]) -> Vectors:
    """Scores ``(n,)`` as probabilities over the integers within the bounds, ``(n, integers)``, with the same mean.

    >>> score_targets(np.array([3.0, 1.25]), (1, 3)).tolist()
    [[0.0, 0.0, 1.0], [0.75, 0.25, 0.0]]
    """
    steps = np.arange(bounds[0], bounds[1] + 1)
    return np.asarray(np.maximum(0, 1 - np.abs(scores[:, None] - steps)), dtype=np.float32)


def _agreement(scores: Array, gold: Array) -> float:
    """Pearson, or -1 if it is undefined because all scores are equal."""
    return pearson(scores, gold) if np.ptp(scores) > 0 else -1.0
