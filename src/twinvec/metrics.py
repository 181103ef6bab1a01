"""Metrics: correlation, classification, clustering, ranking. Pure functions on arrays, in float64, numpy only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least
from twinvec.types import Array

__all__ = [
    "accuracy",
    "average_precision",
    "best_f1_threshold",
    "completeness",
    "f1",
    "homogeneity",
    "ndcg",
    "pearson",
    "ranks",
    "reciprocal_rank",
    "spearman",
    "v_measure",
]


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


def homogeneity(clusters: ArrayLike, classes: ArrayLike) -> float:
    """How far each cluster holds one class only: 1 if all do. Both are ``(n,)`` labels.

    >>> round(homogeneity([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    1.0
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, of_classes)


def completeness(clusters: ArrayLike, classes: ArrayLike) -> float:
    """How far each class lies in one cluster only: 1 if all do. Both are ``(n,)`` labels.

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
    """Of the clusters, of the classes, and of both together, in nats."""
    a, b = np.asarray(clusters), np.asarray(classes)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise InputError(f"Clusters and classes must be equally long lists, not empty, got {a.shape} and {b.shape}.")
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
    """Rank of every value, from 1; equal values share the mean of their ranks. ``(n,)`` to ``(n,)``.

    >>> ranks([10, 30, 20, 30]).tolist()
    [1.0, 3.5, 2.0, 3.5]
    """
    array = np.asarray(values)
    if (array != array).any():  # numpy would rank all NaN as one highest value
        raise InputError(f"{int((array != array).sum())} of {array.size} values are NaN, which has no rank.")
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def pearson(left: ArrayLike, right: ArrayLike) -> float:
    """Linear correlation of two lists of numbers, both ``(n,)``.

    >>> round(pearson([1, 2, 3], [2, 4, 7]), 4)
    0.9934
    """
    a, b = _checked(left, right)
    a, b = _centered(a), _centered(b)
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))


def spearman(left: ArrayLike, right: ArrayLike) -> float:
    """Rank correlation of two lists of numbers, both ``(n,)``: Pearson's of their ranks, means for ties.

    >>> spearman([1, 2, 3], [1, 4, 9])
    1.0
    """
    a, b = _checked(left, right)
    return pearson(ranks(a), ranks(b))


def _checked(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InputError(f"A correlation needs two equally long lists of at least 2, got shapes {a.shape}, {b.shape}.")
    for name, values in (("first", a), ("second", b)):
        if not np.isfinite(values).all():
            raise InputError(f"A correlation needs finite numbers; the {name} list has others.")
        if values.min() == values.max():
            raise InputError(f"The correlation is undefined: all {len(values)} values of the {name} list are equal.")
    return a, b


def _centered(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values less their mean, in units of the largest, so that no square over- or underflows."""
    values = values / np.abs(values).max()
    values = values - values.mean()
    return np.asarray(values / np.abs(values).max(), dtype=np.float64)


def ndcg(gains: ArrayLike, ideal_gains: ArrayLike, *, k: int) -> float:
    """Discounted gain of the first ``k`` places, relative to that of the best possible ranking.

    ``sum gain_i / log2(i + 1)`` over places ``i`` from 1. Gains are linear, the judged relevance itself, as in
    trec_eval and Järvelin & Kekäläinen (2002), not ``2^relevance - 1``; the two agree where relevance is 0 or 1.
    ``gains`` are those of the ranking, best first, ``(n_ranked,)``; ``ideal_gains`` those of all judged texts in
    any order, ``(n_judged,)``.

    >>> round(ndcg([0, 1], [1], k=10), 4)  # 1 / log2(3)
    0.6309
    """
    check_at_least(1, k=k)
    given, ideal = _gains(gains), np.sort(_gains(ideal_gains))[::-1]
    best = _discounted(ideal, k)
    if best == 0:
        raise InputError("nDCG is undefined for a query without relevant texts.", hint="Leave such queries out.")
    value = _discounted(given, k) / best
    if value > 1 + 1e-9:
        raise InputError(
            f"The ranking gains more than the best possible one (nDCG {value:.4f}).",
            hint="Give the gains of all judged texts as ideal_gains, and rank no text twice.",
        )
    return min(value, 1.0)


def reciprocal_rank(hits: ArrayLike, *, k: int | None = None) -> float:
    """1 by the place of the first relevant text; 0 if there is none among the first ``k``.

    >>> reciprocal_rank([0, 1, 1])
    0.5
    """
    found = np.flatnonzero(_hits(hits, k))
    return float(1 / (found[0] + 1)) if len(found) else 0.0


def _discounted(gains: NDArray[np.float64], k: int) -> float:
    gains = gains[:k]
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


def _gains(values: ArrayLike) -> NDArray[np.float64]:
    gains = np.asarray(values, dtype=np.float64)
    if gains.ndim != 1 or not np.isfinite(gains).all() or (gains < 0).any():
        raise InputError(
            f"Gains must be a list of numbers from 0 up, got shape {gains.shape} with lowest "
            f"{gains.min() if gains.size else 'none'}.",
            hint="Give 0 to texts that are judged not relevant.",
        )
    return gains


def _hits(values: ArrayLike, k: int | None) -> NDArray[np.bool_]:
    hits = np.asarray(values)
    if hits.ndim != 1 or not np.isin(hits, (0, 1)).all():
        raise InputError(f"Hits must be a list of 0 and 1, best place first, got shape {hits.shape}.")
    check_at_least(1, k=k)
    return hits[:k].astype(bool)
