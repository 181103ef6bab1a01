"""How well labels, or scores cut at a threshold, agree with true labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError
from twinvec.types import Array

__all__ = ["Threshold", "accuracy", "average_precision", "best_f1_threshold", "best_threshold", "f1"]


class Threshold(NamedTuple):
    """Items with a score of at least ``threshold`` are taken as positive; ``value`` is what that gives."""

    threshold: float
    value: float


def accuracy(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Share of labels that are right. Both are ``(n,)``, of any kind of label.

    >>> accuracy(["a", "b", "b", "c"], ["a", "b", "c", "c"])
    0.75
    """
    a, b = _same_length(predicted, gold)
    return float((a == b).mean())


def f1(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Harmonic mean of precision and recall of the label 1. Both are ``(n,)`` of 0 and 1.

    Undefined without any 1, predicted or true (scikit-learn warns and gives 0).

    >>> f1([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """
    a, b = _same_length(predicted, gold)
    a, b = _as_bool(a, "predicted labels"), _as_bool(b, "true labels")
    n_positive = int(a.sum() + b.sum())
    if n_positive == 0:
        raise InputError(f"F1 is undefined: none of the {len(a)} items is positive, predicted or true.")
    return float(2 * (a & b).sum() / n_positive)


def average_precision(scores: ArrayLike, labels: ArrayLike) -> float:
    """Mean of the precision over the steps of recall, as the threshold sinks. ``(n,)`` scores, ``(n,)`` of 0 and 1.

    ``sum (recall_i - recall_(i-1)) * precision_i`` over the distinct scores, from high to low, without
    interpolation: scikit-learn's definition. Equal scores come in together. Undefined without a positive.

    >>> round(average_precision([0.9, 0.8, 0.7], [1, 0, 1]), 4)  # 1/2 * 1 + 1/2 * 2/3
    0.8333
    """
    cut = _cuts(scores, labels)
    steps = np.diff(cut.n_right, prepend=0)
    return float((steps * cut.n_right / cut.n_taken).sum() / _n_positive(cut))


def best_threshold(scores: ArrayLike, labels: ArrayLike) -> Threshold:
    """The threshold of the highest accuracy, the higher one of equals. ``(n,)`` scores, ``(n,)`` of 0 and 1.

    It lies midway between two neighbouring scores. Taking all, or none, as positive counts as well, so the
    accuracy is never below that of the more frequent label. Chosen on the data it is judged on, it flatters.

    >>> best_threshold([0.9, 0.5, 0.25, 0.0], [1, 1, 0, 0])
    Threshold(threshold=0.375, value=1.0)
    """
    cut = _cuts(scores, labels)
    n, n_positive = int(cut.n_taken[-1]), int(cut.n_right[-1])
    n_right = np.append(n - n_positive, n - n_positive - cut.n_taken + 2 * cut.n_right)  # none taken, then each cut
    best = int(n_right.argmax())
    return Threshold(_threshold(cut.scores, best), float(n_right[best] / n))


def best_f1_threshold(scores: ArrayLike, labels: ArrayLike) -> Threshold:
    """The threshold of the highest F1, the higher one of equals. ``(n,)`` scores, ``(n,)`` of 0 and 1.

    >>> best_f1_threshold([0.9, 0.5, 0.25, 0.0], [1, 0, 1, 0])
    Threshold(threshold=0.125, value=0.8)
    """
    cut = _cuts(scores, labels)
    values = 2 * cut.n_right / (cut.n_taken + _n_positive(cut))
    best = int(values.argmax())
    return Threshold(_threshold(cut.scores, best + 1), float(values[best]))


class _Cuts(NamedTuple):
    """The distinct scores from high to low; how many items each cut takes, and how many of those are positive."""

    scores: NDArray[np.float64]
    n_taken: NDArray[np.int64]
    n_right: NDArray[np.int64]


def _cuts(scores: ArrayLike, labels: ArrayLike) -> _Cuts:
    values, marks = _same_length(scores, labels)
    positive = _as_bool(marks, "labels")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{int((~np.isfinite(values)).sum())} of {len(values)} scores are not finite numbers.")
    order = np.argsort(-values, kind="stable")
    values = values[order]
    ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
    return _Cuts(values[ends], ends + 1, np.cumsum(positive[order])[ends])


def _threshold(scores: NDArray[np.float64], n_cuts: int) -> float:
    """The threshold that takes the first ``n_cuts`` of the distinct scores, which sink."""
    if n_cuts == 0:
        return float(np.nextafter(scores[0], np.inf))
    if n_cuts == len(scores):
        return float(scores[-1])
    lowest_in, highest_out = scores[n_cuts - 1], scores[n_cuts]
    middle = highest_out + (lowest_in - highest_out) / 2
    return float(middle if middle > highest_out else lowest_in)  # neighbours in floating point have no middle


def _n_positive(cut: _Cuts) -> int:
    if cut.n_right[-1] == 0:
        raise InputError(f"Precision and recall are undefined: none of the {cut.n_taken[-1]} labels is 1.")
    return int(cut.n_right[-1])


def _same_length(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise InputError(f"Two equally long lists are needed, not empty, got shapes {a.shape} and {b.shape}.")
    return a, b


def _as_bool(values: Array, name: str) -> NDArray[np.bool_]:
    if values.dtype == np.bool_:
        return values
    strange = values[~np.isin(values, (0, 1))]
    if len(strange):
        raise InputError(f"The {name} must be 0 or 1, but {len(strange)} are not, such as {strange[0].item()!r}.")
    return np.asarray(values == 1, dtype=np.bool_)
