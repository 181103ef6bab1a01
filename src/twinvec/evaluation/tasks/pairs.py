"""Pair classification: does a threshold on the cosine tell whether two texts mean the same?

As in MTEB and SBERT's evaluators, the thresholds are the best ones for the same pairs, so accuracy and F1 are upper
bounds on what a threshold from other data achieves. Average precision requires no threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, check_columns, embed_once
from twinvec.metrics import cuts
from twinvec.types import Array
from twinvec.vectors import similarity_pairwise

__all__ = ["PairTask", "best_accuracy_threshold", "best_f1_threshold", "pair_outcomes", "run_pairs"]


@dataclass(frozen=True)
class PairTask:
    """Pairs of texts with the label 1 if both mean the same, else 0."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    gold: Sequence[int]

    def __post_init__(self) -> None:
        columns = {"left texts": self.left, "right texts": self.right, "labels": self.gold}
        check_columns(self.name, columns, at_least=2)
        for row, label in enumerate(self.gold):
            if label not in (0, 1):
                raise InputError(f"{self.name}, row {row}: the label is {label!r}, not 0 or 1.")
        if len(set(self.gold)) == 1:
            problem = f"{self.name}: all {len(self.gold)} labels are {self.gold[0]}."
            raise InputError(problem, hint="Use pairs with both labels.")


def run_pairs(task: PairTask, embed: Embed) -> list[Outcome]:
    """Return three outcomes: accuracy and F1, each at its best threshold, and average precision."""
    left, right = embed_once(embed, task.left, task.right)
    return pair_outcomes(task, similarity_pairwise(left, right), of="cosine")


def pair_outcomes(task: PairTask, scores: Array, *, of: str) -> list[Outcome]:
    """Return the outcomes of some system's scores, ``(pairs,)``; ``of`` names them in the protocol."""
    gold = np.asarray(task.gold, dtype=np.int64)
    how = f"x 100 at the best {of} threshold, chosen on the same pairs"
    by_accuracy, by_f1 = scores > best_accuracy_threshold(scores, gold), scores > best_f1_threshold(scores, gold)
    return [
        Outcome(task.name, f"Accuracy {how}", "accuracy", by_accuracy.astype(np.int64), gold),
        Outcome(task.name, f"F1 {how}", "f1", by_f1.astype(np.int64), gold),
        Outcome(task.name, f"Average precision of {of} x 100", "average_precision", scores, gold),
    ]


def best_accuracy_threshold(scores: Array, gold: Array) -> float:
    """The threshold with the highest accuracy, if scores above it mean "the same". Both are ``(n,)``.

    >>> best_accuracy_threshold(np.array([0.9, 0.2, 0.6]), np.array([1, 0, 1]))
    0.4
    """
    thresholds, above, right = _thresholds(scores, gold)
    return float(thresholds[np.argmax(right + (gold == 0).sum() - (above - right))])


def best_f1_threshold(scores: Array, gold: Array) -> float:
    """The threshold with the highest F1 of the pairs above it. Both are ``(n,)``.

    >>> best_f1_threshold(np.array([0.9, 0.2, 0.6, 0.4]), np.array([1, 0, 0, 1]))
    0.30000000000000004
    """
    thresholds, above, right = _thresholds(scores, gold)
    return float(thresholds[np.argmax(2 * right / (above + gold.sum()))])


def _thresholds(scores: Array, gold: Array) -> tuple[Array, Array, Array]:
    """All thresholds, highest first, with the number of pairs above each, and how many of these have label 1."""
    cut = cuts(scores, gold)
    following = np.append(cut.scores[1:], -np.inf)
    return np.append(np.inf, (cut.scores + following) / 2), np.append(0, cut.n_taken), np.append(0, cut.n_right)
