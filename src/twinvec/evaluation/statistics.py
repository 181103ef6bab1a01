"""Predictions of a task, and the statistic computed from them, times 100 as in papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import Aggregation
from twinvec.errors import InputError, UnknownNameError
from twinvec.metrics import accuracy, average_precision, f1, pearson, spearman, v_measure
from twinvec.types import Array

__all__ = ["STATISTICS", "Method", "Outcome", "Recount", "Stratum", "statistic_of", "strata", "value_of"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The predictions behind one score of one task.

    ``statistic``, a key of ``STATISTICS``, computes the score from ``predicted`` and ``gold``, both ``(n,)``. ``gold``
    is None if each prediction is already the item's value, such as an nDCG or 1 for a right answer. For tasks with
    subsets, ``groups`` ``(n,)`` has the index of each item's subset in ``group_names``, and ``aggregation`` says if
    the score is over all items or an average over subsets. ``protocol`` describes all of this in words.
    """

    task: str
    protocol: str
    statistic: str
    predicted: Array
    gold: Array | None = None
    groups: Array | None = None
    group_names: tuple[str, ...] = ()
    aggregation: Aggregation = "all"

    def __post_init__(self) -> None:
        for name in ("gold", "groups"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.predicted):
                raise InputError(f"{self.task}: {len(self.predicted)} predictions, but {len(values)} values of {name}.")
        if self.aggregation != "all" and self.groups is None:
            raise InputError(f"{self.task}: the aggregation {self.aggregation!r} requires subsets, but there are none.")

    def __len__(self) -> int:
        return len(self.predicted)


Floats = NDArray[np.float64]
Recount = Callable[[Floats], Floats]  # counts (n, resamples) -> values (resamples,)

MIN_VARIANCE = 1e-12  # relative to the variance of all items; anything below is rounding error


def recount_mean(values: Array, _: Array | None = None) -> Recount:
    """The mean value of the drawn items.

    >>> recount_mean(np.array([1.0, 4.0]))(np.array([[2.0, 1.0], [0.0, 1.0]])).tolist()
    [1.0, 2.5]
    """
    numbers = values.astype(np.float64)
    return lambda counts: numbers @ counts / counts.sum(axis=0)


def recount_accuracy(predicted: Array, gold: Array) -> Recount:
    """The share of the drawn items whose label is right."""
    return recount_mean(predicted == gold)


def recount_pearson(predicted: Array, gold: Array) -> Recount:
    """Linear correlation from weighted moments of the standardized values."""
    a, b = _standardized(predicted), _standardized(gold)
    products = np.stack([a, b, a * a, b * b, a * b])

    def correlation(counts: Floats) -> Floats:
        mean_a, mean_b, aa, bb, ab = products @ counts / counts.sum(axis=0)
        variance = np.minimum(aa - mean_a**2, bb - mean_b**2)
        product = (aa - mean_a**2) * (bb - mean_b**2)
        return _ratio(ab - mean_a * mean_b, np.sqrt(np.where(variance > MIN_VARIANCE, product, 0)))

    return correlation


def recount_spearman(predicted: Array, gold: Array) -> Recount:
    """Rank correlation; ranks within a resample are cumulative sums of its counts, in the order of the values."""
    rank_a, rank_b = _ranked(predicted), _ranked(gold)

    def correlation(counts: Floats) -> Floats:
        a, b = rank_a(counts), rank_b(counts)
        weighted_a, weighted_b = counts * a, counts * b
        product = np.einsum("ij,ij->j", weighted_a, a) * np.einsum("ij,ij->j", weighted_b, b)
        return _ratio(np.einsum("ij,ij->j", weighted_a, b), np.sqrt(product))

    return correlation


def recount_f1(predicted: Array, gold: Array) -> Recount:
    """F1 of label 1."""
    a, b = (predicted == 1).astype(np.float64), (gold == 1).astype(np.float64)
    return lambda counts: _ratio(2 * (a * b) @ counts, (a + b) @ counts)


def recount_average_precision(scores: Array, labels: Array) -> Recount:
    """Average precision; items with equal scores are retrieved together."""
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
    """V-measure ``2 I / (H(C) + H(K))``; 1 if both entropies are 0."""
    by_cluster, by_class = _summed(clusters), _summed(classes)
    names, class_ = np.unique(classes, return_inverse=True)
    by_both = _summed(np.unique(clusters, return_inverse=True)[1] * len(names) + class_)

    def measure(counts: Floats) -> Floats:
        both = _entropy(by_cluster(counts)) + _entropy(by_class(counts))
        shared = both - _entropy(by_both(counts))
        return np.where(both > 0, np.clip(2 * shared / np.where(both > 0, both, 1), 0, 1), 1.0)

    return measure


def _ranked(values: Array) -> Recount:
    """Mean ranks of the drawn items minus the mean of all ranks; keeps the shape ``(n, resamples)``."""
    by_value = _summed(values)
    index = np.unique(values, return_inverse=True)[1]

    def ranks(counts: Floats) -> Floats:
        drawn = by_value(counts)
        middle = np.cumsum(drawn, axis=0)
        middle -= drawn / 2  # the mean rank of equal values, minus 1/2
        middle -= counts.sum(axis=0) / 2
        return np.take(middle, index, axis=0)

    return ranks


def _summed(values: Array) -> Recount:
    """Counts per distinct value, lowest first: ``(n, resamples)`` to ``(distinct, resamples)``."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) == len(values):
        return lambda counts: np.take(counts, order, axis=0)  # five times as fast as counts[order]
    return lambda counts: np.add.reduceat(np.take(counts, order, axis=0), starts, axis=0)


def _entropy(counts: Floats) -> Floats:
    """The entropy of each column, in nats."""
    shares = counts / counts.sum(axis=0)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=0), dtype=np.float64)


def _standardized(values: Array) -> Floats:
    numbers = values.astype(np.float64)
    numbers = numbers / np.abs(numbers).max()
    numbers = numbers - numbers.mean()
    return np.asarray(numbers / numbers.std(), dtype=np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """``above / below``; NaN where ``below`` is 0."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


Kind = Literal["correlation", "mean", "whole"]
Method = Literal["bca", "jackknife"]


def _mean(values: Array, _: None = None) -> float:
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) == 0:
        raise InputError("The mean of no items is undefined.")
    if not np.isfinite(numbers).all():
        raise InputError(f"{int((~np.isfinite(numbers)).sum())} of {len(numbers)} values are not finite numbers.")
    return float(numbers.mean())


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of ``predicted`` and ``gold``, both ``(n,)``.

    ``of`` computes it as a fraction, ``recount`` computes it on many resamples; scores are ``scale`` times it. ``kind``
    decides which tests are valid: a "mean" averages one value per item (right or wrong, an nDCG); a "whole" depends on
    all items together. ``method`` is the method of its confidence interval.
    """

    kind: Kind
    of: Callable[[Array, Any], float]
    recount: Callable[[Array, Any], Recount]
    method: Method = "bca"
    scale: float = 100.0


STATISTICS: dict[str, Statistic] = {
    "spearman": Statistic("correlation", spearman, recount_spearman),
    "pearson": Statistic("correlation", pearson, recount_pearson),
    "accuracy": Statistic("mean", accuracy, recount_accuracy),
    "mean": Statistic("mean", _mean, recount_mean),
    "f1": Statistic("whole", f1, recount_f1),
    "average_precision": Statistic("whole", average_precision, recount_average_precision),
    "v_measure": Statistic("whole", v_measure, recount_v_measure, method="jackknife"),
}


class Stratum(NamedTuple):
    """Items that are scored together, and the weight of their score in the outcome's score."""

    name: str
    share: float
    items: Array


def statistic_of(outcome: Outcome) -> Statistic:
    """The statistic of an outcome, after checking that the outcome has what it needs."""
    if outcome.statistic not in STATISTICS:
        raise UnknownNameError("statistic", outcome.statistic, STATISTICS)
    if outcome.statistic == "mean" and outcome.gold is not None:
        raise InputError(
            f"{outcome.task}: the statistic 'mean' uses the predictions only, but the outcome has gold values.",
            hint="Remove gold, or use the statistic 'accuracy' to compare labels.",
        )
    if outcome.statistic != "mean" and outcome.gold is None:
        raise InputError(f"{outcome.task}: the statistic {outcome.statistic!r} requires gold values.")
    return STATISTICS[outcome.statistic]


def strata(outcome: Outcome) -> list[Stratum]:
    """The strata whose scores make up the outcome's score: all items together, or the averaged subsets."""
    if outcome.aggregation == "all":
        return [Stratum("", 1.0, np.arange(len(outcome)))]
    groups = _groups(outcome)
    sizes = [len(items) if outcome.aggregation == "weighted mean" else 1 for items in groups.values()]
    return [Stratum(name, size / sum(sizes), items) for (name, items), size in zip(groups.items(), sizes, strict=True)]


def value_of(outcome: Outcome) -> float:
    """The score of an outcome, times 100.

    With ``aggregation`` "mean", every subset counts the same; with "weighted mean", by its size.

    >>> value_of(Outcome("TREC", "accuracy", "accuracy", np.array([1, 2, 3]), np.array([1, 2, 0]))).__round__(2)
    66.67
    """
    return sum(part.share * _value(outcome, part.items, part.name) for part in strata(outcome))


def _value(outcome: Outcome, items: Array, name: str) -> float:
    statistic = statistic_of(outcome)
    gold = None if outcome.gold is None else outcome.gold[items]
    try:
        return statistic.scale * statistic.of(outcome.predicted[items], gold)
    except InputError as error:
        where = f"{outcome.task}, subset {name!r}" if name else outcome.task
        raise InputError(f"{where}: {error.problem}", hint=error.hint) from error


def _groups(outcome: Outcome) -> dict[str, Array]:
    """The items of each subset, by name."""
    groups, names = np.asarray(outcome.groups), outcome.group_names
    if len(groups) and not (groups.min() >= 0 and groups.max() < len(names)):
        raise InputError(
            f"{outcome.task}: groups has indices {groups.min()} to {groups.max()}, but {len(names)} subsets are named.",
            hint="Name every subset in group_names; indices start at 0.",
        )
    by_name = {name: np.flatnonzero(groups == i) for i, name in enumerate(names)}
    empty = [name for name, items in by_name.items() if len(items) == 0]
    if empty or len(by_name) < len(names):
        problem = f"has no items in the subset {empty[0]!r}" if empty else "names a subset twice"
        raise InputError(f"{outcome.task} {problem}.", hint="Name each subset once, and only subsets with items.")
    return by_name
