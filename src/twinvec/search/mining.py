"""The most similar pairs among many vectors: exact, in blocks of the upper triangle.

The score of the worst pair kept so far is the bar for all later blocks, so after the first few blocks only a
handful of candidates per block are looked at, and the time is that of the matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError
from twinvec.search.exact import checked_rows
from twinvec.types import Vectors
from twinvec.vectors import unit_rows

__all__ = ["Pairs", "most_similar_pairs"]

BLOCK_ROWS = 2048  # 16 MB of scores; smaller blocks keep BLAS waiting for its threads (512: four times slower)


ROUNDING = 1e-6  # more than the float32 products of rows of length 1 are off


class Pairs(NamedTuple):
    """Pair ``i`` is rows ``left[i] < right[i]``, best first; ties by left, then right. All are ``(n,)``."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    scores: NDArray[np.float32]


def most_similar_pairs(vectors: ArrayLike, k: int = 100, *, threshold: float | None = None) -> Pairs:
    """The ``k`` pairs of rows with the highest cosine, best first. ``vectors`` is ``(n, width)``.

    With ``threshold``, only pairs of at least that cosine. All ``n (n - 1) / 2`` pairs are compared in
    float32; the scores of those kept are then taken in float64, so that equal rows score 1 everywhere.
    Which of several pairs within 1e-6 of place ``k`` get in is not defined.

    >>> pairs = most_similar_pairs([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]], k=1)
    >>> pairs.left.tolist(), pairs.right.tolist()
    ([0], [2])
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    if threshold is not None and not np.isfinite(threshold):
        raise InputError(f"threshold must be a number, got {threshold}.")
    rows = unit_rows(checked_rows(vectors, "vectors").astype(np.float32, copy=False))
    floor = -np.inf if threshold is None else threshold - ROUNDING
    best = _no_pairs()
    for left, right in _blocks(len(rows)):
        bar = float(best.scores[-1]) if len(best.scores) == k else floor
        scores = rows[left : left + BLOCK_ROWS] @ rows[right : right + BLOCK_ROWS].T
        if left == right:
            scores[np.tri(len(scores), dtype=bool)] = -np.inf  # each pair once, and no row with itself
        found = _candidates(scores, k, bar=bar)
        if len(found.scores):
            best = _merge(best, Pairs(found.left + left, found.right + right, found.scores), k)
    found = _rescored(best, rows)
    if threshold is None:
        return found
    reached = found.scores >= np.float32(threshold)
    return Pairs(found.left[reached], found.right[reached], found.scores[reached])


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """First rows of the blocks of the upper triangle.

    >>> list(_blocks(2 * BLOCK_ROWS)) == [(0, 0), (0, BLOCK_ROWS), (BLOCK_ROWS, BLOCK_ROWS)]
    True
    """
    starts = range(0, n, BLOCK_ROWS)
    return ((left, right) for left in starts for right in starts if right >= left)


def _candidates(scores: Vectors, k: int, *, bar: float) -> Pairs:
    """The at most ``k`` best places of one block with a score of at least ``bar``, in row-major order."""
    # the lowest number instead of -inf: the masked half of a diagonal block never gets in
    at_least = np.float32(max(bar, float(np.finfo(np.float32).min)))
    places = np.flatnonzero(scores >= at_least)
    values = scores.ravel()[places]
    if len(places) > k:
        last = np.partition(values, len(values) - k)[len(values) - k]
        better, tied = np.flatnonzero(values > last), np.flatnonzero(values == last)
        kept = np.sort(np.concatenate([better, tied[: k - len(better)]]))  # places rise: the first ties win
        places, values = places[kept], values[kept]
    left, right = np.divmod(places, scores.shape[1])
    return Pairs(left, right, values)


def _merge(one: Pairs, other: Pairs, k: int) -> Pairs:
    left = np.concatenate([one.left, other.left])
    right = np.concatenate([one.right, other.right])
    scores = np.concatenate([one.scores, other.scores])
    order = np.lexsort((right, left, -scores))[:k]
    return Pairs(left[order], right[order], scores[order])


def _rescored(pairs: Pairs, rows: Vectors) -> Pairs:
    """The same pairs with scores free of the rounding that depends on a pair's place in its block."""
    products = np.einsum("ij,ij->i", rows[pairs.left], rows[pairs.right], dtype=np.float64)
    return _merge(_no_pairs(), pairs._replace(scores=products.astype(np.float32)), len(products))


def _no_pairs() -> Pairs:
    empty = np.empty(0, dtype=np.int64)
    return Pairs(empty, empty, np.empty(0, dtype=np.float32))
