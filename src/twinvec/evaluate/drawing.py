"""Resamples of the items of one or more outcomes, and the number that each gives.

Assumed: the items are independent draws from the texts one wants to speak about. Pairs that share a sentence, or
questions about one document, are not quite that, and make intervals too narrow. Where the outcome's number is
averaged over subsets, the subsets are kept as they are and items are drawn within each. The model, and what was
fitted on other data (a classifier, cluster centers), stay as they are too: intervals tell of the test items only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.recount import Recount
from twinvec.evaluate.statistics import Stratum, statistic_of, strata, value_of
from twinvec.types import Array

__all__ = ["USUAL", "Resamples", "Resampling", "resample"]

Floats = NDArray[np.float64]

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
            raise InputError(f"n_resamples must be at least 100, got {self.n_resamples}.", hint="2000 is usual.")
        if not 0.5 <= self.level < 1:
            raise InputError(f"level must be from 0.5 to below 1, got {self.level}.", hint="0.95 is usual.")


USUAL = Resampling()


@dataclass(frozen=True, eq=False)
class Resamples:
    """A value, that of every resample ``(n_resamples,)``, and how far each share of the items moves it ``(shares,)``.

    ``replicates`` are NaN where the resample leaves the value undefined.
    """

    value: float
    replicates: Floats
    influences: Floats

    def __sub__(self, other: Resamples) -> Resamples:
        """The difference of two values, both from the same resamples."""
        return Resamples(
            self.value - other.value, self.replicates - other.replicates, self.influences - other.influences
        )


def resample(outcomes: Sequence[Outcome], resampling: Resampling = USUAL) -> list[Resamples]:
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


def _numbers(part: _Part, blocks: Iterable[Floats]) -> Floats:
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
        names, place = np.unique(column, return_inverse=True)
        cells = np.unique(cells * len(names) + place, return_inverse=True)[1]
    return np.unique(cells, return_index=True)[1], cells


def _drawn(cells: Array, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Blocks of counts of ``n`` draws with replacement."""
    n, sizes = len(cells), np.bincount(cells)
    for width in _widths(n_resamples, len(sizes)):
        if 20 * len(sizes) < n:  # few cells: one binomial each beats n draws (1 ms, not 30 s, for 223,000 items)
            yield rng.multinomial(n, sizes / n, size=width).T.astype(np.float64)
            continue
        places = np.take(cells, rng.integers(0, n, size=(n, width)))
        places *= width
        places += np.arange(width)
        counts = np.bincount(places.ravel(), minlength=len(sizes) * width)
        yield counts.reshape(len(sizes), width).astype(np.float64)


def _influences(part: _Part, rng: np.random.Generator) -> Floats:
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
