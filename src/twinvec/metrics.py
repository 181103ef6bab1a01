"""Metrics: correlation, classification, clustering. Pure functions on arrays, in float64, numpy only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError
from twinvec.types import Array

__all__ = [
    "accuracy",
    "average_precision",
    "cuts",
    "f1",
    "pearson",
    "ranks",
    "spearman",
    "v_measure",
]


def accuracy(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Share of correct labels. Both are ``(n,)``, of any type.

    >>> accuracy(["a", "b", "b", "c"], ["a", "b", "c", "c"])
    0.75
    """
    a, b = _same_length(predicted, gold)
    return float((a == b).mean())


def f1(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Harmonic mean of precision and recall of the label 1. Both are ``(n,)`` of 0 and 1.

    Undefined if no label is 1, predicted or true (scikit-learn warns and returns 0).

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
    """Average precision as the threshold falls. ``(n,)`` scores, ``(n,)`` labels 0 and 1.

    ``sum (recall_i - recall_(i-1)) * precision_i`` over the distinct scores, from high to low, without
    interpolation, as in scikit-learn. Equal scores enter together. Undefined without a positive.

    >>> round(average_precision([0.9, 0.8, 0.7], [1, 0, 1]), 4)  # 1/2 * 1 + 1/2 * 2/3
    0.8333
    """
    cut = cuts(scores, labels)
    steps = np.diff(cut.n_right, prepend=0)
    return float((steps * cut.n_right / cut.n_taken).sum() / _n_positive(cut))


class Cuts(NamedTuple):
    """The distinct scores from high to low; per cut, the items at or above it, and the positives among them."""

    scores: NDArray[np.float64]
    n_taken: NDArray[np.int64]
    n_right: NDArray[np.int64]


def cuts(scores: ArrayLike, labels: ArrayLike) -> Cuts:
    """All cuts of a ranking by score; equal scores stay together. ``(n,)`` scores, ``(n,)`` labels 0 and 1.

    >>> cuts([0.2, 0.9, 0.9], [1, 1, 0]).n_right.tolist()
    [1, 2]
    """
    values, marks = _same_length(scores, labels)
    positive = _as_bool(marks, "labels")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{int((~np.isfinite(values)).sum())} of {len(values)} scores are not finite numbers.")
    order = np.argsort(-values, kind="stable")
    values = values[order]
    ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
    return Cuts(values[ends], ends + 1, np.cumsum(positive[order])[ends])


def _n_positive(cut: Cuts) -> int:
    if cut.n_right[-1] == 0:
        raise InputError(f"Precision and recall are undefined: none of the {cut.n_taken[-1]} labels is 1.")
    return int(cut.n_right[-1])


def _same_length(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise InputError(f"Expected two non-empty lists of equal length, got shapes {a.shape} and {b.shape}.")
    return a, b


def _as_bool(values: Array, name: str) -> NDArray[np.bool_]:
    if values.dtype == np.bool_:
        return values
    others = values[~np.isin(values, (0, 1))]
    if len(others):
        raise InputError(f"The {name} must be 0 or 1, but {len(others)} are not, such as {others[0].item()!r}.")
    return np.asarray(values == 1, dtype=np.bool_)


def homogeneity(clusters: ArrayLike, classes: ArrayLike) -> float:
    """How pure the clusters are: 1 if each holds a single class. Both are ``(n,)`` labels.

    >>> round(homogeneity([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    1.0
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, of_classes)


def completeness(clusters: ArrayLike, classes: ArrayLike) -> float:
    """How complete the clusters are: 1 if each class lies in a single cluster. Both are ``(n,)`` labels.

    >>> round(completeness([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    0.6667
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, of_clusters)


def v_measure(clusters: ArrayLike, classes: ArrayLike) -> float:
    """Harmonic mean of homogeneity and completeness. Both are ``(n,)`` labels.

    >>> round(v_measure([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    0.8
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, (of_clusters + of_classes) / 2)


def _entropies(clusters: ArrayLike, classes: ArrayLike) -> tuple[float, float, float]:
    """Entropies of the clusters, of the classes, and of both jointly, in nats."""
    a, b = _same_length(clusters, classes)
    _, cluster = np.unique(a, return_inverse=True)
    names, class_ = np.unique(b, return_inverse=True)
    return _entropy(cluster), _entropy(class_), _entropy(cluster * len(names) + class_)


def _entropy(labels: Array) -> float:
    _, counts = np.unique(labels, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _share(information: float, entropy: float) -> float:
    return 1.0 if entropy <= 0 else float(np.clip(information / entropy, 0, 1))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Rank of each value, from 1; equal values share their mean rank. ``(n,)`` to ``(n,)``.

    >>> ranks([10, 30, 20, 30]).tolist()
    [1.0, 3.5, 2.0, 3.5]
    """
    array = np.asarray(values)
    if (array != array).any():  # numpy would rank NaN highest
        raise InputError(f"{int((array != array).sum())} of {array.size} values are NaN, which has no rank.")
    _, index, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[index], dtype=np.float64)


def pearson(left: ArrayLike, right: ArrayLike) -> float:
    """Linear correlation of two lists of numbers, both ``(n,)``.

    >>> round(pearson([1, 2, 3], [2, 4, 7]), 4)
    0.9934
    """
    a, b = _checked(left, right)
    a, b = _centered(a), _centered(b)
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))


def spearman(left: ArrayLike, right: ArrayLike) -> float:
    """Rank correlation of two lists of numbers, both ``(n,)``: Pearson's of their ranks.

    >>> spearman([1, 2, 3], [1, 4, 9])
    1.0
    """
    a, b = _checked(left, right)
    return pearson(ranks(a), ranks(b))


def _checked(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InputError(f"A correlation needs two lists of equal length, 2 or more, got shapes {a.shape}, {b.shape}.")
    for name, values in (("first", a), ("second", b)):
        if not np.isfinite(values).all():
            raise InputError(f"A correlation needs finite numbers; the {name} list has NaN or infinity.")
        if values.min() == values.max():
            raise InputError(f"The correlation is undefined: all {len(values)} values of the {name} list are equal.")
    return a, b


def _centered(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values minus their mean, scaled by the largest, so that squares do not over- or underflow."""
    values = values / np.abs(values).max()
    values = values - values.mean()
    return np.asarray(values / np.abs(values).max(), dtype=np.float64)
