"""How good one ranking is, given the grade of each of its documents, best place first. Pure functions on one query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["average_precision_of", "ndcg", "recall", "reciprocal_rank"]


def ndcg(grades: Sequence[float], ideal: Sequence[float], *, k: int) -> float:
    """Discounted gain of the first ``k`` places over the best possible one; the gain is the grade itself.

    ``grades`` are those of the ranking, ``ideal`` those of all relevant documents, in any order.

    >>> round(ndcg([0, 1], [1], k=10), 4)
    0.6309
    """
    return _gain(grades[:k]) / _gain(sorted(ideal, reverse=True)[:k])


def average_precision_of(grades: Sequence[float], n_relevant: int) -> float:
    """Mean, over all relevant documents, of the precision at their places; one that is not ranked counts 0.

    >>> average_precision_of([1, 0, 1], n_relevant=2)
    0.8333333333333333
    """
    places = [place for place, grade in enumerate(grades, start=1) if grade > 0]
    return sum(found / place for found, place in enumerate(places, start=1)) / n_relevant


def reciprocal_rank(grades: Sequence[float], *, k: int) -> float:
    """1 over the place of the first relevant document; 0 if none is among the first ``k``.

    >>> reciprocal_rank([0, 0, 2], k=10), reciprocal_rank([0, 0, 2], k=2)
    (0.3333333333333333, 0.0)
    """
    return next((1 / place for place, grade in enumerate(grades[:k], start=1) if grade > 0), 0.0)


def recall(grades: Sequence[float], n_relevant: int, *, k: int) -> float:
    """The share of the relevant documents that is among the first ``k``.

    >>> recall([1, 0, 1], 4, k=2)
    0.25
    """
    return sum(grade > 0 for grade in grades[:k]) / n_relevant


def _gain(grades: Sequence[float]) -> float:
    return float(np.sum(np.asarray(grades, dtype=np.float64) / np.log2(np.arange(2, len(grades) + 2))))
