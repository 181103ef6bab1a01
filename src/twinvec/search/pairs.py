"""The most similar pairs among many vectors: exact, in blocks of the upper triangle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least
from twinvec.search.exact import Workers, best_order, equal_parts, first_thresholds
from twinvec.search.measures import MEASURES, product_rounding, unit_rows_of
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import numeric_rows

__all__ = [
    "MOST_PAIRS",
    "Pairs",
    "all_pairs_above",
    "best_first",
    "check_limits",
    "exact_cosines",
    "join_pairs",
    "most_similar_pairs",
    "no_pairs",
]

PAIRS_AT_ONCE = 8192  # 50 MB of float64 rows of width 384


class Pairs(NamedTuple):
    """Pair ``i`` is rows ``left[i] < right[i]``, best first; ties by left, then right. All are ``(n,)``."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    scores: NDArray[np.float32]

    def take(self, indices: Ids | NDArray[np.bool_] | slice) -> Pairs:
        """The pairs at ``indices``."""
        return Pairs(self.left[indices], self.right[indices], self.scores[indices])


def no_pairs() -> Pairs:
    """An empty list of pairs."""
    empty = np.empty(0, dtype=np.int64)
    return Pairs(empty, empty, np.empty(0, dtype=np.float32))


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Concatenate several lists of pairs."""
    return Pairs(*(np.concatenate(arrays) for arrays in zip(no_pairs(), *parts, strict=True)))


def best_first(pairs: Pairs, k: int | None = None) -> Pairs:
    """The ``k`` best pairs (default: all), best first; ties by left, then right.

    >>> pairs = Pairs(np.array([0, 1, 0]), np.array([2, 3, 1]), np.array([0.5, 0.9, 0.5], np.float32))
    >>> best_first(pairs).right.tolist()
    [3, 1, 2]
    """
    order = best_order(pairs.scores)
    if k is not None and k < len(order):
        n_tied = np.count_nonzero(pairs.scores[order[k:]] == pairs.scores[order[k - 1]])
        order = order[: k + n_tied]  # including all ties at rank k
    pairs = pairs.take(order)
    is_tied = pairs.scores[1:] == pairs.scores[:-1]
    tied = np.flatnonzero(np.append(is_tied, False) | np.append(False, is_tied))
    if len(tied):
        some = pairs.take(tied)
        some = some.take(np.lexsort((some.right, some.left, -some.scores)))
        pairs.left[tied], pairs.right[tied] = some.left, some.right
    return pairs.take(slice(k))


def exact_cosines(rows: Array, left: Ids, right: Ids) -> NDArray[np.float32]:
    """Cosines of pairs ``(m,)`` of rows ``(n, width)``, computed in float64 and then rounded to float32."""
    scores = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        both = rows[left[part]].astype(np.float64), rows[right[part]].astype(np.float64)
        scores[part] = MEASURES["cosine"].exact(*both)
    return scores


class PairBlock(NamedTuple):
    """Rows ``left`` with rows ``right``: two ranges that are disjoint or equal."""

    left: slice
    right: slice

    @property
    def is_diagonal(self) -> bool:
        """Whether both ranges are equal, so that half of the block is redundant."""
        return self.left == self.right


def triangle_blocks(stop: int, n_rows: int, n_columns: int, *, start: int = 0) -> Iterator[PairBlock]:
    """Blocks of at most ``(n_rows, n_columns)`` that cover every pair of rows once, largest first.

    Blocks on the diagonal are half as high, because half of their scores are redundant.

    >>> [(block.left.start, block.right.start) for block in triangle_blocks(4, 2, 4)]
    [(0, 2), (0, 1), (0, 0), (1, 1), (2, 3), (2, 2), (3, 3)]
    """
    if stop - start <= max(n_rows // 2, 1):
        if stop > start:
            yield PairBlock(slice(start, stop), slice(start, stop))
        return
    middle = (start + stop) // 2
    for left in _even_slices(start, middle, n_rows):
        for right in _even_slices(middle, stop, n_columns):
            yield PairBlock(left, right)
    yield from triangle_blocks(middle, n_rows, n_columns, start=start)
    yield from triangle_blocks(stop, n_rows, n_columns, start=middle)


def _even_slices(start: int, stop: int, longest: int) -> Iterator[slice]:
    """Slices of about equal length, none longer than ``longest``: a short last one would slow BLAS down."""
    parts = equal_parts(stop - start, -(-(stop - start) // longest))
    return (slice(start + part.start, start + part.stop) for part in parts)


BLOCK_ROWS = 1280  # 26 MB of scores; smaller blocks keep BLAS waiting for its threads
BLOCK_WIDTH = 4  # columns of a block per row
SAMPLE_ROWS = 128  # rows from which the floor is estimated
LIKELY = 1.3  # the estimate aims at this many times k pairs
MOST_PAIRS = 100_000_000  # limit without k; they take 2 GB
LOWEST = float(np.finfo(np.float32).min)  # not -inf, which masks half of a diagonal block


def most_similar_pairs(vectors: ArrayLike, k: int | None = 100, *, threshold: float | None = None) -> Pairs:
    """The ``k`` pairs of rows with the highest cosine, best first. ``vectors`` is ``(n, width)``.

    With ``threshold``, only pairs with at least that cosine; all of them if ``k`` is None. All ``n (n - 1) / 2`` pairs
    are compared in float32. Scores near the cutoff or near 1 are recomputed in float64, so that the selection is exact
    and equal rows score 1; other scores keep their float32 rounding, which may swap pairs that agree in six digits. If
    more than ``4 * k`` pairs are within rounding error of rank ``k``, any of them may be selected.

    >>> pairs = most_similar_pairs([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]], k=1)
    >>> pairs.left.tolist(), pairs.right.tolist()
    ([0], [2])
    """
    check_limits(k, threshold)
    rows = numeric_rows(vectors, "vectors")
    if k is None:
        assert threshold is not None
        return best_first(join_pairs(list(all_pairs_above(rows, threshold))))
    units = unit_rows_of(rows)
    guess = likely_floor(units, k)
    pairs = _best_pairs(units, k, threshold, floor=guess)
    if guess > LOWEST and len(pairs.scores) < k:  # rare: the estimate was too high
        pairs = _best_pairs(units, k, threshold, floor=LOWEST)
    return pairs


def all_pairs_above(vectors: ArrayLike, threshold: float) -> Iterator[Pairs]:
    """All pairs of rows ``(n, width)`` with at least that cosine, block by block, unsorted.

    Scores near the threshold or near 1 are computed in float64.
    """
    check_limits(None, threshold)
    rows = unit_rows_of(numeric_rows(vectors, "vectors"))
    slack, n_found = 2 * product_rounding(rows.shape[1]), 0
    with Workers() as workers:
        for block, scores in _scored_blocks(rows):
            parts = [found.pairs() for found in _look(block, scores, threshold - slack, workers)]
            pairs = _settled(join_pairs(parts), rows, [threshold], slack)
            pairs = pairs.take(pairs.scores >= np.float32(threshold))
            n_found += len(pairs.scores)
            if n_found > MOST_PAIRS:
                raise InputError(f"More than {MOST_PAIRS:,} pairs reach the threshold {threshold:g}.", hint="Raise it.")
            yield pairs


def check_limits(k: int | None, threshold: float | None) -> None:
    """Raise an error if ``k`` is below 1, ``threshold`` is not finite, or both are None."""
    check_at_least(1, k=k)
    if threshold is not None and not np.isfinite(threshold):
        raise InputError(f"threshold must be a finite number, got {threshold}.")
    if k is None and threshold is None:
        raise InputError("Neither k nor threshold is set.", hint="Set k, threshold, or both.")


def _best_pairs(rows: Vectors, k: int, threshold: float | None, *, floor: float) -> Pairs:
    """The best pairs among those that score at least ``floor``; ``rows`` have length 1."""
    best = _BestPairs(k, threshold, slack=2 * product_rounding(rows.shape[1]), floor=floor)
    with Workers() as workers:
        for block, scores in _scored_blocks(rows):
            best.add(block, scores, workers)
    return best.pairs(rows)


def _scored_blocks(rows: Vectors) -> Iterator[tuple[PairBlock, Vectors]]:
    """All pairs of rows of length 1, in blocks with their scores; the next block overwrites the scores."""
    room = np.empty(BLOCK_ROWS * BLOCK_WIDTH * BLOCK_ROWS, dtype=np.float32)
    for block in triangle_blocks(len(rows), BLOCK_ROWS, BLOCK_WIDTH * BLOCK_ROWS):
        left, right = rows[block.left], rows[block.right]
        scores = np.matmul(left, right.T, out=room[: len(left) * len(right)].reshape(len(left), -1))
        if block.is_diagonal:
            scores[np.tri(len(scores), dtype=bool)] = -np.inf  # each pair once, and no row with itself
        yield block, scores


def likely_floor(rows: Vectors, k: int) -> float:
    """A score that slightly more than ``k`` pairs should reach, estimated from a sample of ``rows`` ``(n, width)``.

    Returns the lowest float32 if there are too few rows for an estimate.
    """
    share = LIKELY * k / (len(rows) * (len(rows) - 1) / 2) if len(rows) > 1 else 1.0
    if len(rows) < 8 * SAMPLE_ROWS or share > 0.5:
        return LOWEST
    indices = np.linspace(0, len(rows) - 1, SAMPLE_ROWS).astype(np.int64)  # evenly spaced, in case the rows are sorted
    scores = (rows[indices] @ rows.T).ravel()
    scores[np.arange(SAMPLE_ROWS) * len(rows) + indices] = -1  # each row with itself
    rank = max(1, round(share * len(scores)))
    return float(first_thresholds(scores[None, :], rank)[0])


class _Found(NamedTuple):
    """Flat indices ``(n,)`` into a block, with their scores ``(n,)``."""

    block: PairBlock
    indices: Ids
    scores: NDArray[np.float32]

    def above(self, floor: float) -> _Found:
        kept = np.flatnonzero(self.scores >= np.float32(floor))
        return _Found(self.block, self.indices[kept], self.scores[kept])

    def pairs(self) -> Pairs:
        left, right = np.divmod(self.indices, self.block.right.stop - self.block.right.start)
        return Pairs(left + self.block.left.start, right + self.block.right.start, self.scores)


def _look(block: PairBlock, scores: Vectors, floor: float, workers: Workers) -> list[_Found]:
    """The scores of a block that reach the floor, in parts."""
    flat = scores.ravel()

    def look(part: slice) -> _Found:
        indices = np.flatnonzero(flat[part] >= np.float32(floor)) + part.start
        return _Found(block, indices, flat[indices])

    return workers.map(look, workers.split(len(flat)))


def _settled(pairs: Pairs, rows: Vectors, borders: list[float], slack: float) -> Pairs:
    """Recompute scores in float64 where rounding matters: near 1, and near the cutoffs in ``borders``."""
    unsure = pairs.scores >= 1 - slack
    for border in borders:
        unsure |= np.abs(pairs.scores - border) <= slack
    indices = np.flatnonzero(unsure)
    pairs.scores[indices] = exact_cosines(rows, pairs.left[indices], pairs.right[indices])
    return pairs


class _BestPairs:
    """The best ``k`` pairs so far, and those within rounding error of the last of them or of the threshold."""

    def __init__(self, k: int, threshold: float | None, *, slack: float, floor: float) -> None:
        self.k, self.threshold, self.slack = k, threshold, slack
        self.floor = floor if threshold is None else max(floor, threshold - slack)
        self._found: list[_Found] = []
        self._n_found = 0
        self._kept = no_pairs()

    def add(self, block: PairBlock, scores: Vectors, workers: Workers) -> None:
        """Add the scores of a block that may be among the best."""
        if not self._found and not len(self._kept.scores) and self.k < scores.size:
            self.floor = max(self.floor, float(first_thresholds(scores.reshape(1, -1), self.k)[0]) - self.slack)
        for found in _look(block, scores, self.floor, workers):
            if len(found.indices):
                self._found.append(found)
                self._n_found += len(found.indices)
        if self._n_found > 2 * self.k:
            self._raise_floor()

    def _raise_floor(self) -> None:
        """Raise the floor to the k-th best score, minus the rounding error."""
        scores = np.concatenate([self._kept.scores, *(found.scores for found in self._found)])
        self.floor = max(self.floor, self._last(scores) - self.slack)
        self._found = [kept for found in self._found if len((kept := found.above(self.floor)).indices)]
        self._n_found = sum(len(found.indices) for found in self._found)
        if self._n_found > 4 * self.k:
            self._give_up_ties()

    def _give_up_ties(self) -> None:
        """When too many pairs are within rounding error: keep the first of the best, then accept only better ones."""
        pairs = join_pairs([self._kept, *(found.pairs() for found in self._found)])
        self._kept = pairs.take(best_order(pairs.scores)[: self.k])
        self._found, self._n_found = [], 0
        self.floor = float(np.nextafter(self._kept.scores[-1], np.float32(np.inf)))

    def _last(self, scores: NDArray[np.float32]) -> float:
        """The k-th best score; reorders ``scores``."""
        scores.partition(len(scores) - self.k)
        return float(scores[len(scores) - self.k])

    def pairs(self, rows: Vectors) -> Pairs:
        """The best pairs, best first."""
        pairs = join_pairs([self._kept, *(found.above(self.floor).pairs() for found in self._found)])
        borders = [] if self.threshold is None else [self.threshold]
        if len(pairs.scores) > self.k:
            borders.append(self._last(pairs.scores.copy()))
        pairs = _settled(pairs, rows, borders, self.slack)
        if self.threshold is not None:
            pairs = pairs.take(pairs.scores >= np.float32(self.threshold))
        return best_first(pairs, self.k)
