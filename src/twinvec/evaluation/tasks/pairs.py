"""Paired classification: do the two texts mean the same, by one threshold on the cosine?

The thresholds are the best ones for these very pairs, as in MTEB and SBERT's evaluators, so accuracy and F1 are upper
bounds of what a threshold chosen elsewhere gives. Average precision needs no threshold.
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

__all__ = ["PairTask", "best_accuracy_threshold", "best_f1_threshold", "run_pairs"]


@dataclass(frozen=True)
class PairTask:
    """Pairs of texts, marked 1 where both mean the same and 0 where they do not."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    gold: Sequence[int]

    def __post_init__(self) -> None:
        columns = {"left texts": self.left, "right texts": self.right, "marks": self.gold}
        check_columns(self.name, columns, at_least=2)
        for row, mark in enumerate(self.gold):
            if mark not in (0, 1):
                raise InputError(f"{self.name}, row {row}: the mark is {mark!r}, not 0 or 1.")
        if len(set(self.gold)) == 1:
            raise InputError(f"{self.name}: all {len(self.gold)} marks are {self.gold[0]}.", hint="Give pairs of both.")


def run_pairs(task: PairTask, embed: Embed) -> list[Outcome]:
    """Three outcomes: accuracy and F1, each at its best threshold, and average precision."""
    left, right = embed_once(embed, task.left, task.right)
    scores = similarity_pairwise(left, right)
    gold = np.asarray(task.gold, dtype=np.int64)
    found = {
        "accuracy": scores > best_accuracy_threshold(scores, gold),
        "f1": scores > best_f1_threshold(scores, gold),
    }
    shown = {"accuracy": "Accuracy", "f1": "F1"}
    at_best = [
        Outcome(
            task=task.name,
            protocol=f"{shown[name]} x 100 at the best cosine threshold, chosen on the same pairs",
            statistic=name,
            predicted=marks.astype(np.int64),
            gold=gold,
        )
        for name, marks in found.items()
    ]
    return [
        *at_best,
        Outcome(
            task=task.name,
            protocol="Average precision of cosine x 100",
            statistic="average_precision",
            predicted=scores,
            gold=gold,
        ),
    ]


def best_accuracy_threshold(scores: Array, gold: Array) -> float:
    """The threshold with the most right answers, if scores above it mean "the same". Both are ``(n,)``.

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
    """Every different threshold, pairs above it, and those of them marked 1. Highest first."""
    cut = cuts(scores, gold)
    following = np.append(cut.scores[1:], -np.inf)
    return np.append(np.inf, (cut.scores + following) / 2), np.append(0, cut.n_taken), np.append(0, cut.n_right)
