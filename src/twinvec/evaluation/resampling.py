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

Floats = NDArray[np.float64]

COUNTS_PER_BLOCK = 2**17  # 1 MB of counts stays in the cache
MAX_SHARES = 200  # for the jackknife; using shares instead of items adds about 0.002 to the acceleration's error
MAX_UNDEFINED = 0.05
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Resampling:
    """The number of resamples, the confidence level, and the seed. The same seed gives the same numbers."""

    n_resamples: int = 2000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_resamples < 100:
            raise InputError(f"n_resamples must be at least 100, got {self.n_resamples}.", hint="The default is 2000.")
        if not 0.5 <= self.level < 1:
            raise InputError(
                f"level must be at least 0.5 and below 1, got {self.level}.", hint="The default is 0.95, for 95 %."
            )


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True, eq=False)
class Resamples:
    """A value, its ``replicates`` ``(n_resamples,)``, and the influence of each share of the items ``(shares,)``.

    A replicate is NaN if the value is undefined on that resample.
    """

    value: float
    replicates: Floats
    influences: Floats

    def __sub__(self, other: Resamples) -> Resamples:
        """The difference of two values from the same resamples."""
        replicates, influences = self.replicates - other.replicates, self.influences - other.influences
        return Resamples(self.value - other.value, replicates, influences)


def resample(outcomes: Sequence[Outcome], resampling: Resampling = DEFAULT_RESAMPLING) -> list[Resamples]:
    """Resample several outcomes of the same items and statistic, with the same resamples for all."""
    values = [value_of(outcome) for outcome in outcomes]
    scale, rng = statistic_of(outcomes[0]).scale, np.random.default_rng(resampling.seed)
    replicates, influences = np.zeros((len(outcomes), resampling.n_resamples)), []
    for stratum in strata(outcomes[0]):
        part, weight = _part(outcomes, stratum), scale * stratum.share
        replicates += weight * _recounted(part, _draw(part.cells, resampling.n_resamples, rng))
        influences.append(weight * _influences(part, rng))
    rows = zip(values, replicates, np.concatenate(influences, axis=1), strict=True)
    return [Resamples(*row) for row in rows]


@dataclass(frozen=True, eq=False)
class _Part:
    """One stratum: the cell of each item, ``(n,)``, and a recount function per outcome.

    Items that are equal in every outcome share a cell, so 223,000 answers that are right or wrong are two cells.
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


def _recounted(part: _Part, blocks: Iterable[Floats]) -> Floats:
    """Values ``(outcomes, resamples)`` for blocks of counts, each ``(cells, some resamples)``."""
    return np.concatenate([np.stack([recount(counts) for recount in part.recounts]) for counts in blocks], axis=1)


def distinct_rows(columns: Sequence[Array]) -> tuple[Array, Array]:
    """The first index of each distinct row, ``(cells,)``, and the cell of every row, ``(n,)``.

    >>> first, cells = distinct_rows([np.array([5, 5, 7]), np.array(["a", "a", "a"])])
    >>> first.tolist(), cells.tolist()
    ([0, 2], [0, 0, 1])
    """
    cells = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        names, index = np.unique(column, return_inverse=True)
        cells = np.unique(cells * len(names) + index, return_inverse=True)[1]
    return np.unique(cells, return_index=True)[1], cells


def _draw(cells: Array, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw ``n`` items with replacement for each resample; yield blocks of counts per cell."""
    n, sizes = len(cells), np.bincount(cells)
    for width in _widths(n_resamples, len(sizes)):
        if 20 * len(sizes) < n:  # few cells: one multinomial draw beats n draws (1 ms, not 30 s, for 223,000 items)
            yield rng.multinomial(n, sizes / n, size=width).T.astype(np.float64)
            continue
        indices = np.take(cells, rng.integers(0, n, size=(n, width)))
        indices *= width
        indices += np.arange(width)
        counts = np.bincount(indices.ravel(), minlength=len(sizes) * width)
        yield counts.reshape(len(sizes), width).astype(np.float64)


def _influences(part: _Part, rng: np.random.Generator) -> Floats:
    """How much each of at most 200 random shares of the items raises the value, ``(outcomes, shares)``.

    This is the jackknife that leaves out one share at a time. The influence of a share is the sum over its items, so
    ``sum u^2`` and ``sum u^3`` over shares estimate the same variance and skewness as over single items.
    """
    n, sizes = len(part.cells), np.bincount(part.cells)
    n_shares = min(n, MAX_SHARES)
    share = rng.permutation(np.arange(n) % n_shares)
    left_out = np.bincount(part.cells * n_shares + share, minlength=len(sizes) * n_shares).reshape(-1, n_shares)
    ends = np.cumsum(list(_widths(n_shares, len(sizes))))[:-1]
    counts = (sizes[:, None] - left_out).astype(np.float64)
    without = _recounted(part, np.split(counts, ends, axis=1))
    is_defined = np.isfinite(without)
    n_defined = np.maximum(is_defined.sum(axis=1, keepdims=True), 1)
    mean = np.where(is_defined, without, 0).sum(axis=1, keepdims=True) / n_defined
    moved = np.where(is_defined, mean - without, 0)
    return np.asarray(moved * (n - left_out.sum(axis=0)) / n, dtype=np.float64)


def _widths(n_columns: int, n_rows: int) -> Iterator[int]:
    """Sizes of blocks of columns, each of about ``COUNTS_PER_BLOCK`` counts."""
    width = max(8, COUNTS_PER_BLOCK // n_rows)
    return (min(width, n_columns - start) for start in range(0, n_columns, width))


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class _Shape(NamedTuple):
    """The defined replicates, sorted, with BCa's bias (``z0``) and acceleration (``a``)."""

    replicates: Floats
    bias: float
    acceleration: float


def interval(outcome: Outcome, resampling: Resampling = DEFAULT_RESAMPLING) -> Interval:
    """The confidence interval of ``value_of(outcome)``.

    >>> right = np.repeat([1, 0], [80, 20])
    >>> low, high = interval(Outcome("SICK-E", "accuracy", "mean", right))
    >>> round(low), round(high)
    (71, 87)
    """
    constant = _constant_value(outcome)
    if constant is not None:
        return _wilson(outcome, constant, level=resampling.level)
    statistic = statistic_of(outcome)
    low, high = interval_of(resample([outcome], resampling)[0], level=resampling.level, method=statistic.method)
    if statistic.method == "jackknife":  # BCa never leaves the range of the replicates
        low, high = max(low, 0.0), min(high, statistic.scale)
    return Interval(low, high)


def interval_of(resamples: Resamples, *, level: float = 0.95, method: Method = "bca") -> Interval:
    """The confidence interval of a resampled value, or of the difference of two."""
    tail = NORMAL.inv_cdf((1 - level) / 2)
    if method == "jackknife":
        margin = tail * _standard_error(resamples)
        return Interval(resamples.value + margin, resamples.value - margin)
    shape = _shape(resamples)
    low, high = (np.quantile(shape.replicates, _share_below(z, shape)) for z in (tail, -tail))
    return Interval(float(low), float(high))


def p_value_of(resamples: Resamples, *, method: Method = "bca") -> float:
    """Two-sided p value of "the value is 0": 1 minus the level at which the interval just reaches 0.

    With "bca" it is at least 2 / (resamples + 1), the smallest p value that this many resamples can give.
    """
    if method == "jackknife":
        error = _standard_error(resamples)
        if error == 0:
            return 1.0 if resamples.value == 0 else 0.0
        return 2 * NORMAL.cdf(-abs(resamples.value) / error)
    shape = _shape(resamples)
    n = len(shape.replicates)
    if shape.replicates[0] == shape.replicates[-1]:
        return 1.0 if shape.replicates[0] == 0 else 2 / (n + 1)
    z = NORMAL.inv_cdf(_clipped(_share_under(shape.replicates, 0.0), n)) - shape.bias
    z = z / max(1 + shape.acceleration * z, 1e-9) - shape.bias  # the inverse of _share_below
    return float(np.clip(2 * NORMAL.cdf(-abs(z)), 2 / (n + 1), 1))


def _standard_error(resamples: Resamples) -> float:
    return float(np.sqrt((resamples.influences**2).sum()))


def _shape(resamples: Resamples) -> _Shape:
    replicates = np.sort(resamples.replicates[np.isfinite(resamples.replicates)])
    n_undefined = len(resamples.replicates) - len(replicates)
    if n_undefined > MAX_UNDEFINED * len(resamples.replicates):
        raise InputError(
            f"The interval is undefined: {n_undefined} of {len(resamples.replicates)} resamples have no value, "
            "because too few items differ.",
            hint="Use more items.",
        )
    below = _clipped(_share_under(replicates, resamples.value), len(replicates))
    spread = float((resamples.influences**2).sum())
    skew = float((resamples.influences**3).sum()) / spread**1.5 if spread > 0 else 0.0
    return _Shape(replicates, NORMAL.inv_cdf(below), skew / 6)


def _share_below(z: float, shape: _Shape) -> float:
    """The share of replicates below the interval's end at the normal quantile ``z``: Efron's formula."""
    shifted = shape.bias + z
    stretch = 1 - shape.acceleration * shifted
    if stretch <= 0:
        return 0.0 if z < 0 else 1.0
    return NORMAL.cdf(shape.bias + shifted / stretch)


def _share_under(replicates: Floats, value: float) -> float:
    """The share of the sorted replicates below a value; equal ones, up to rounding, count half."""
    slack = 1e-9 * max(1.0, abs(value))
    first, last = np.searchsorted(replicates, (value - slack, value + slack))
    return float(first + last) / 2 / len(replicates)


def _clipped(share: float, n: int) -> float:
    return min(max(share, 1 / (n + 1)), n / (n + 1))


def _constant_value(outcome: Outcome) -> float | None:
    """0 if all items are wrong, 1 if all are right, else None."""
    if statistic_of(outcome).kind != "mean" or len(outcome) == 0:
        return None
    values = outcome.predicted if outcome.gold is None else outcome.predicted == outcome.gold
    return float(values[0]) if values[0] in (0, 1) and (values == values[0]).all() else None


def _wilson(outcome: Outcome, constant: float, *, level: float) -> Interval:
    """Wilson's (1927) interval if all items are right or all are wrong, because resamples cannot differ then.

    Without it, 20 of 20 right would give "100, interval 100 to 100". If subsets are averaged, ``n`` is the number of
    items at which a plain mean has the same variance.
    """
    z = NORMAL.inv_cdf((1 + level) / 2)
    n = 1 / sum(part.share**2 / len(part.items) for part in strata(outcome))
    scale, gap = statistic_of(outcome).scale, z**2 / (n + z**2)
    return Interval(scale * (1 - gap), scale) if constant else Interval(0.0, scale * gap)
