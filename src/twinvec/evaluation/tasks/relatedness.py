"""Trained relatedness (SentEval's STSb and SICK-R): a softmax over integer scores, on ``[|u - v|, u * v]``.

After Tai et al. (2015, section 3.2 and 4.2): a score between two integers becomes probabilities of both, the model is
fitted to them by their cross-entropy, and predicts the mean score. SentEval minimises the squared error of the
probabilities with Adam and stops on dev; here the fit is exact, and dev chooses the L2 strength, by Pearson.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, check_columns, check_finite, features_of
from twinvec.evaluation.tasks.logistic import fit_softmax
from twinvec.evaluation.tasks.transfer import SPLITS
from twinvec.metrics import pearson
from twinvec.types import Array, Vectors

__all__ = ["RelatednessTask", "run_relatedness", "score_targets"]


@dataclass(frozen=True)
class RelatednessTask:
    """Pairs with scores within ``low`` .. ``high``, each in the split train, dev or test."""

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
                raise InputError(f"{self.name}, row {row}: the score {score:g} is not within {low} to {high}.")
        if set(self.splits) != set(SPLITS):
            raise InputError(
                f"{self.name}: the splits are {', '.join(sorted(set(self.splits)))}.", hint="Give train, dev and test."
            )


def run_relatedness(task: RelatednessTask, embed: Embed) -> list[Outcome]:
    """Two outcomes on the test pairs, in order: Pearson and Spearman of the predicted scores."""
    features, gold = features_of(embed, task.left, others=task.right), np.asarray(task.gold, dtype=np.float64)
    train, dev, test = (np.flatnonzero(np.array(task.splits) == split) for split in SPLITS)
    models = fit_softmax(features[train], score_targets(gold[train], task.bounds))
    steps = np.arange(task.bounds[0], task.bounds[1] + 1)
    agreement = [_agreement(scores, gold[dev]) for scores in models.probabilities(features[dev]) @ steps]
    predicted = (models.probabilities(features[test]) @ steps)[int(np.argmax(agreement))]
    how = "trained softmax over the scores on [|u-v|, u*v], L2 chosen by Pearson on dev, test pairs"
    return [
        Outcome(
            task=task.name,
            protocol=f"{name.capitalize()} x 100, {how}",
            statistic=name,
            predicted=predicted,
            gold=gold[test],
        )
        for name in ("pearson", "spearman")
    ]


def score_targets(scores: Array, bounds: tuple[int, int]) -> Vectors:
    """Scores ``(n,)`` as probabilities of the integers within the bounds, ``(n, integers)``, with the same mean.

    >>> score_targets(np.array([3.0, 1.25]), (1, 3)).tolist()
    [[0.0, 0.0, 1.0], [0.75, 0.25, 0.0]]
    """
    steps = np.arange(bounds[0], bounds[1] + 1)
    return np.asarray(np.maximum(0, 1 - np.abs(scores[:, None] - steps)), dtype=np.float32)


def _agreement(scores: Array, gold: Array) -> float:
    """Pearson, or the lowest value where it is undefined because all scores are the same."""
    return pearson(scores, gold) if np.ptp(scores) > 0 else -1.0
