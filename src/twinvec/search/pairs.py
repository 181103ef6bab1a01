"""Pairs of rows with their scores: their order, and their exact cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.search.measures import MEASURES
from twinvec.search.order import best_places
from twinvec.types import Array, Ids

__all__ = ["Pairs", "best_first", "exact_cosines", "join_pairs", "no_pairs"]

PAIRS_AT_ONCE = 8192  # 50 MB of float64 rows of width 384


class Pairs(NamedTuple):
    """Pair ``i`` is rows ``left[i] < right[i]``, best first; ties by left, then right. All are ``(n,)``."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    scores: NDArray[np.float32]

    def take(self, places: Ids | NDArray[np.bool_] | slice) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.left[places], self.right[places], self.scores[places])


def no_pairs() -> Pairs:
    """A list of none."""
    empty = np.empty(0, dtype=np.int64)
    return Pairs(empty, empty, np.empty(0, dtype=np.float32))


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of several lists, one list after the other."""
    return Pairs(*(np.concatenate(arrays) for arrays in zip(no_pairs(), *parts, strict=True)))


def best_first(pairs: Pairs, k: int | None = None) -> Pairs:
    """The ``k`` best pairs (default: all) from the best down; those with equal scores by left, then right.

    >>> pairs = Pairs(np.array([0, 1, 0]), np.array([2, 3, 1]), np.array([0.5, 0.9, 0.5], np.float32))
    >>> best_first(pairs).right.tolist()
    [3, 1, 2]
    """
    order = best_places(pairs.scores)
    if k is not None and k < len(order):
        n_tied = np.count_nonzero(pairs.scores[order[k:]] == pairs.scores[order[k - 1]])
        order = order[: k + n_tied]  # with all that are tied for place k
    pairs = pairs.take(order)
    is_tied = pairs.scores[1:] == pairs.scores[:-1]
    tied = np.flatnonzero(np.append(is_tied, False) | np.append(False, is_tied))
    if len(tied):
        some = pairs.take(tied)
        some = some.take(np.lexsort((some.right, some.left, -some.scores)))
        pairs.left[tied], pairs.right[tied] = some.left, some.right
    return pairs.take(slice(k))


def exact_cosines(rows: Array, left: Ids, right: Ids) -> NDArray[np.float32]:
    """Cosines of rows ``(n, width)``, by pairs ``(m,)``, computed in float64 and then rounded."""
    scores = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        both = rows[left[part]].astype(np.float64), rows[right[part]].astype(np.float64)
        scores[part] = MEASURES["cosine"].exact(*both)
    return scores
