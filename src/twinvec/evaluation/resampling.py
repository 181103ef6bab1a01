"""Confidence intervals and p values from resampled items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Method, Outcome, Recount, Stratum, statistic_of, strata, value_of
from twinvec.types import Array

__all__ = [
    "DEFAULT_RESAMPLING",
    "Interval",
    "Resamples",
    "Resampling",
    "interval",
    "interval_of",
    "p_value_of",
    "resample",
]

DrawnFloats = NDArray[np.float64]

COUNTS_PER_BLOCK = 2**17  # 1 MB of counts stays in the cache
MOST_LEFT_OUT = 200  # shares left out in turn; what that adds to the error of the acceleration is about 0.002


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many resamples, how sure an interval is to be, and the seed. The same seed gives the same numbers."""

    n_resamples: int = 2000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_resamples < 100:
            raise InputError(f"n_resamples must be at least 100, got {self.n_resamples}.", hint="2000 is the default.")
        if not 0.5 <= self.level < 1:
            raise InputError(f"level must be from 0.5 to below 1, got {self.level}.", hint="0.95 is the default.")


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True, eq=False)
class Resamples:
    """A value, that of every resample ``(n_resamples,)``, and how far each share of the items moves it ``(shares,)``.

    ``replicates`` are NaN where the resample leaves the value undefined.
    """

    value: float
    replicates: DrawnFloats
    influences: DrawnFloats

    def __sub__(self, other: Resamples) -> Resamples:
        """The difference of two values, both from the same resamples."""
        return Resamples(
            self.value - other.value, self.replicates - other.replicates, self.influences - other.influences
        )


def resample(outcomes: Sequence[Outcome], resampling: Resampling = DEFAULT_RESAMPLING) -> list[Resamples]:
    """The values of all outcomes, which are of the same items and statistic, on the same resamples."""
    values = [value_of(outcome) for outcome in outcomes]
    scale, rng = statistic_of(outcomes[0]).scale, np.random.default_rng(resampling.seed)
    replicates, influences = np.zeros((len(outcomes), resampling.n_resamples)), []
    for stratum in strata(outcomes[0]):
        part, weight = _part(outcomes, stratum), scale * stratum.share
        replicates += weight * _numbers(part, _drawn(part.cells, resampling.n_resamples, rng))
        influences.append(weight * _influences(part, rng))
    moved = np.concatenate(influences, axis=1)
    return [Resamples(*row) for row in zip(values, replicates, moved, strict=True)]


@dataclass(frozen=True, eq=False)
class _Part:
    """One stratum: the cell of each item, ``(n,)``, and each outcome's number for counts of cells.

    Items that are equal in every outcome share a cell, so 223,000 answers, right or wrong, are two cells.
    """

    cells: Array
    recounts: list[Recount]


def _part(outcomes: Sequence[Outcome], stratum: Stratum) -> _Part:
    columns = [outcome.predicted[stratum.items] for outcome in outcomes]
    gold = outcomes[0].gold
    first, cells = distinct_rows(columns if gold is None else [*columns, gold[stratum.items]])
    items = stratum.items[first]
    recounts = [
        statistic_of(each).recount(each.predicted[items], None if gold is None else gold[items]) for each in outcomes
    ]
    return _Part(cells, recounts)


def _numbers(part: _Part, blocks: Iterable[DrawnFloats]) -> DrawnFloats:
    """``(outcomes, resamples)`` numbers for blocks of counts, each ``(cells, some resamples)``."""
    return np.concatenate([np.stack([recount(counts) for recount in part.recounts]) for counts in blocks], axis=1)


def distinct_rows(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Where each distinct row first stands, ``(cells,)``, and the cell of every row, ``(n,)``.

    >>> first, cells = distinct_rows([np.array([5, 5, 7]), np.array(["a", "a", "a"])])
    >>> first.tolist(), cells.tolist()
    ([0, 2], [0, 0, 1])
    """
    cells = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        names, index = np.unique(column, return_inverse=True)
        cells = np.unique(cells * len(names) + index, return_inverse=True)[1]
    return np.unique(cells, return_index=True)[1], cells


def _drawn(cells: Array, n_resamples: int, rng: np.random.Generator) -> Iterator[DrawnFloats]:
    """Blocks of counts of ``n`` draws with replacement."""
    n, sizes = len(cells), np.bincount(cells)
    for width in _widths(n_resamples, len(sizes)):
        if 20 * len(sizes) < n:  # few cells: one binomial each beats n draws (1 ms, not 30 s, for 223,000 items)
            yield rng.multinomial(n, sizes / n, size=width).T.astype(np.float64)
            continue
        indices = np.take(cells, rng.integers(0, n, size=(n, width)))
        indices *= width
        indices += np.arange(width)
        counts = np.bincount(indices.ravel(), minlength=len(sizes) * width)
        yield counts.reshape(len(sizes), width).astype(np.float64)


def _influences(part: _Part, rng: np.random.Generator) -> DrawnFloats:
    """How far each of at most 200 random shares of the items pulls the number up, ``(outcomes, shares)``.

    The jackknife that leaves out a share at a time: the influence of a share is the sum of its items', so that
    ``sum u^2`` and ``sum u^3`` over shares estimate the same variance and skewness as over single items.
    """
    n, sizes = len(part.cells), np.bincount(part.cells)
    n_shares = min(n, MOST_LEFT_OUT)
    share = rng.permutation(np.arange(n) % n_shares)
    left_out = np.bincount(part.cells * n_shares + share, minlength=len(sizes) * n_shares).reshape(-1, n_shares)
    ends = np.cumsum(list(_widths(n_shares, len(sizes))))[:-1]
    counts = (sizes[:, None] - left_out).astype(np.float64)
    without = _numbers(part, np.split(counts, ends, axis=1))
    is_defined = np.isfinite(without)
    middle = (
        np.where(is_defined, without, 0).sum(axis=1, keepdims=True) / np.maximum(is_defined.sum(axis=1), 1)[:, None]
    )
    moved = np.where(is_defined, middle - without, 0)
    return np.asarray(moved * (n - left_out.sum(axis=0)) / n, dtype=np.float64)


def _widths(n_columns: int, n_rows: int) -> Iterator[int]:
    """Sizes of blocks of columns, each of about ``COUNTS_PER_BLOCK`` counts."""
    width = max(8, COUNTS_PER_BLOCK // n_rows)
    return (min(width, n_columns - start) for start in range(0, n_columns, width))


Floats = NDArray[np.float64]

NORMAL = NormalDist()
MOST_UNDEFINED = 0.05


class Interval(NamedTuple):
    """From ``low`` to ``high``."""

    low: float
    high: float


class _Shape(NamedTuple):
    """The resamples that are defined, sorted, with BCa's bias (``z0``) and acceleration (``a``)."""

    replicates: Floats
    bias: float
    acceleration: float


def interval(outcome: Outcome, resampling: Resampling = DEFAULT_RESAMPLING) -> Interval:
    """The interval of ``value_of(outcome)``.

    >>> right = np.repeat([1, 0], [80, 20])
    >>> low, high = interval(Outcome("SICK-E", "accuracy", "mean", right))
    >>> round(low), round(high)
    (71, 87)
    """
    common = _common_value(outcome)
    if common is not None:
        return _wilson(outcome, common, level=resampling.level)
    statistic = statistic_of(outcome)
    low, high = interval_of(resample([outcome], resampling)[0], level=resampling.level, method=statistic.method)
    if statistic.method == "jackknife":  # the other method stays within what resamples gave
        low, high = max(low, 0.0), min(high, statistic.scale)
    return Interval(low, high)


def interval_of(resamples: Resamples, *, level: float = 0.95, method: Method = "bca") -> Interval:
    """The interval of a resampled value, or of a difference of two."""
    tail = NORMAL.inv_cdf((1 - level) / 2)
    if method == "jackknife":
        return Interval(resamples.value + tail * _error(resamples), resamples.value - tail * _error(resamples))
    shape = _shape(resamples)
    low, high = (np.quantile(shape.replicates, _share_below(z, shape)) for z in (tail, -tail))
    return Interval(float(low), float(high))


def p_value_of(resamples: Resamples, *, method: Method = "bca") -> float:
    """Two-sided p value of "the value is 0": 1 less the level at which the interval just reaches 0.

    By "bca" it is never below 2 / (resamples + 1), the least that so many can show.
    """
    if method == "jackknife":
        return _jackknife_p_value(resamples)
    shape = _shape(resamples)
    n = len(shape.replicates)
    if shape.replicates[0] == shape.replicates[-1]:
        return 1.0 if shape.replicates[0] == 0 else 2 / (n + 1)
    z = NORMAL.inv_cdf(_clipped(_share_under(shape.replicates, 0.0), n)) - shape.bias
    z = z / max(1 + shape.acceleration * z, 1e-9) - shape.bias  # the inverse of _share_below
    return float(np.clip(2 * NORMAL.cdf(-abs(z)), 2 / (n + 1), 1))


def _jackknife_p_value(resamples: Resamples) -> float:
    error = _error(resamples)
    if error == 0:
        return 1.0 if resamples.value == 0 else 0.0
    return 2 * NORMAL.cdf(-abs(resamples.value) / error)


def _error(resamples: Resamples) -> float:
    """The jackknife's standard error."""
    return float(np.sqrt((resamples.influences**2).sum()))


def _shape(resamples: Resamples) -> _Shape:
    replicates = resamples.replicates
    replicates = np.sort(replicates[np.isfinite(replicates)])
    n_undefined = len(resamples.replicates) - len(replicates)
    if n_undefined > MOST_UNDEFINED * len(resamples.replicates):
        raise InputError(
            f"No interval: {n_undefined} of {len(resamples.replicates)} resamples have no value, "
            "because too few items differ.",
            hint="Give more items.",
        )
    below = _clipped(_share_under(replicates, resamples.value), len(replicates))
    spread = float((resamples.influences**2).sum())
    skew = float((resamples.influences**3).sum()) / spread**1.5 if spread > 0 else 0.0
    return _Shape(replicates, NORMAL.inv_cdf(below), skew / 6)


def _share_below(z: float, shape: _Shape) -> float:
    """The share of the resamples below the end of an interval whose normal quantile is ``z``: Efron's formula."""
    shifted = shape.bias + z
    stretch = 1 - shape.acceleration * shifted
    if stretch <= 0:
        return 0.0 if z < 0 else 1.0
    return NORMAL.cdf(shape.bias + shifted / stretch)


def _share_under(replicates: Floats, value: float) -> float:
    """Share of the sorted replicates that are lower; equal ones, up to rounding, count half."""
    slack = 1e-9 * max(1.0, abs(value))
    first, last = np.searchsorted(replicates, (value - slack, value + slack))
    return float(first + last) / 2 / len(replicates)


def _clipped(share: float, n: int) -> float:
    return min(max(share, 1 / (n + 1)), n / (n + 1))


def _common_value(outcome: Outcome) -> float | None:
    """0 or 1 where every item has just that value, all wrong or all right."""
    if statistic_of(outcome).kind != "mean" or len(outcome) == 0:
        return None
    values = outcome.predicted if outcome.gold is None else outcome.predicted == outcome.gold
    return float(values[0]) if values[0] in (0, 1) and (values == values[0]).all() else None


def _wilson(outcome: Outcome, common: float, *, level: float) -> Interval:
    """Wilson's (1927) interval for all items right, or all wrong, where resamples cannot differ.

    Without it, 20 right of 20 would read "100, interval 100 to 100". ``n`` is the number of items that a plain
    mean of the same variance would have, where subsets are averaged.
    """
    z = NORMAL.inv_cdf((1 + level) / 2)
    n = 1 / sum(part.share**2 / len(part.items) for part in strata(outcome))
    scale, gap = statistic_of(outcome).scale, z**2 / (n + z**2)
    return Interval(scale * (1 - gap), scale) if common else Interval(0.0, scale * gap)
