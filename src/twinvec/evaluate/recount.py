"""Each statistic of many resamples at once, from how often every item was drawn.

A resample is a column of counts, so nothing is copied or sorted again: 1,000 resamples of 5,000 pairs' rank
correlation take 0.35 s on one core; ranking each anew takes 1.5 s, or 3.5 s with scipy. Each function here
prepares one list of items and returns a function of ``counts``, ``(n, resamples)``, that gives ``(resamples,)``
values, with NaN where a resample leaves the statistic undefined. The tests hold them against ``twinvec.metrics``
on items that are really repeated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinvec.types import Array

__all__ = [
    "Recount",
    "recount_accuracy",
    "recount_average_precision",
    "recount_f1",
    "recount_mean",
    "recount_pearson",
    "recount_spearman",
    "recount_v_measure",
]

Floats = NDArray[np.float64]
Recount = Callable[[Floats], Floats]  # counts (n, resamples) -> values (resamples,)

LEAST_VARIANCE = 1e-12  # in units of the variance of all items; what is left below it is rounding


def recount_mean(values: Array, _: Array | None = None) -> Recount:
    """The mean of the values of the items drawn.

    >>> recount_mean(np.array([1.0, 4.0]))(np.array([[2.0, 1.0], [0.0, 1.0]])).tolist()
    [1.0, 2.5]
    """
    numbers = values.astype(np.float64)
    return lambda counts: numbers @ counts / counts.sum(axis=0)


def recount_accuracy(predicted: Array, gold: Array) -> Recount:
    """The share of the items drawn whose label is right."""
    return recount_mean(predicted == gold)


def recount_pearson(predicted: Array, gold: Array) -> Recount:
    """Linear correlation, from weighted moments of the standardized values."""
    a, b = _standardized(predicted), _standardized(gold)
    products = np.stack([a, b, a * a, b * b, a * b])

    def correlation(counts: Floats) -> Floats:
        mean_a, mean_b, aa, bb, ab = products @ counts / counts.sum(axis=0)
        variance = np.minimum(aa - mean_a**2, bb - mean_b**2)
        product = (aa - mean_a**2) * (bb - mean_b**2)
        return _ratio(ab - mean_a * mean_b, np.sqrt(np.where(variance > LEAST_VARIANCE, product, 0)))

    return correlation


def recount_spearman(predicted: Array, gold: Array) -> Recount:
    """Rank correlation: the ranks within a resample are running sums of its counts, in the order of the values."""
    rank_a, rank_b = _ranked(predicted), _ranked(gold)

    def correlation(counts: Floats) -> Floats:
        a, b = rank_a(counts), rank_b(counts)
        weighted_a, weighted_b = counts * a, counts * b
        product = np.einsum("ij,ij->j", weighted_a, a) * np.einsum("ij,ij->j", weighted_b, b)
        return _ratio(np.einsum("ij,ij->j", weighted_a, b), np.sqrt(product))

    return correlation


def recount_f1(predicted: Array, gold: Array) -> Recount:
    """F1 of the label 1."""
    a, b = (predicted == 1).astype(np.float64), (gold == 1).astype(np.float64)
    return lambda counts: _ratio(2 * (a * b) @ counts, (a + b) @ counts)


def recount_average_precision(scores: Array, labels: Array) -> Recount:
    """Average precision; equal scores come in together."""
    by_score = _summed(-scores.astype(np.float64))
    positive = (labels == 1).astype(np.float64)[:, None]

    def precision(counts: Floats) -> Floats:
        n_right = by_score(counts * positive)
        running = np.cumsum(n_right, axis=0)
        n_taken = np.cumsum(by_score(counts), axis=0)
        n_taken[n_taken == 0] = 1
        return _ratio(np.einsum("ij,ij->j", n_right, running / n_taken), running[-1])

    return precision


def recount_v_measure(clusters: Array, classes: Array) -> Recount:
    """V-measure: ``2 I / (H(C) + H(K))``, which is 1 where both entropies are 0."""
    by_cluster, by_class = _summed(clusters), _summed(classes)
    names, class_ = np.unique(classes, return_inverse=True)
    by_both = _summed(np.unique(clusters, return_inverse=True)[1] * len(names) + class_)

    def measure(counts: Floats) -> Floats:
        both = _entropy(by_cluster(counts)) + _entropy(by_class(counts))
        shared = both - _entropy(by_both(counts))
        return np.where(both > 0, np.clip(2 * shared / np.where(both > 0, both, 1), 0, 1), 1.0)

    return measure


def _ranked(values: Array) -> Recount:
    """Mean ranks of the items drawn, less the mean of all ranks: ``(n, resamples)`` to the same shape."""
    by_value = _summed(values)
    place = np.unique(values, return_inverse=True)[1]

    def ranks(counts: Floats) -> Floats:
        drawn = by_value(counts)
        middle = np.cumsum(drawn, axis=0)
        middle -= drawn / 2  # the mean rank of equal values is half a draw lower and 1/2 higher than this
        middle -= counts.sum(axis=0) / 2
        return np.take(middle, place, axis=0)

    return ranks


def _summed(values: Array) -> Recount:
    """The draws of each distinct value, lowest first: ``(n, resamples)`` to ``(distinct, resamples)``."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) == len(values):
        return lambda counts: np.take(counts, order, axis=0)  # five times as fast as counts[order]
    return lambda counts: np.add.reduceat(np.take(counts, order, axis=0), starts, axis=0)


def _entropy(counts: Floats) -> Floats:
    """Of each column, in nats."""
    shares = counts / counts.sum(axis=0)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=0), dtype=np.float64)


def _standardized(values: Array) -> Floats:
    numbers = values.astype(np.float64)
    numbers = numbers / np.abs(numbers).max()
    numbers = numbers - numbers.mean()
    return np.asarray(numbers / numbers.std(), dtype=np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
