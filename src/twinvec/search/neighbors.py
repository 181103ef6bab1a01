"""The nearest other rows of every row, and the pairs and the graph they make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError
from twinvec.search.exact import search
from twinvec.search.hits import Hits
from twinvec.search.order import by_query
from twinvec.search.pairs import Pairs, best_first
from twinvec.search.rows import numeric_rows
from twinvec.types import Ids

__all__ = ["Graph", "different_pairs", "neighbor_graph", "neighbor_pairs", "neighbors", "without_self"]


class Graph(NamedTuple):
    """Neighbours of every row: those of row ``i`` are ``ids[starts[i] : starts[i + 1]]``, best first.

    ``starts`` is ``(n + 1,)``, ``ids`` and ``scores`` are ``(edges,)``; every edge is there in both directions.
    """

    starts: Ids
    ids: NDArray[np.int32]
    scores: NDArray[np.float32]

    @property
    def counts(self) -> Ids:
        """How many neighbours each row has, ``(n,)``."""
        return np.diff(self.starts)

    def of(self, row: int) -> NDArray[np.int32]:
        """The neighbours of one row."""
        return self.ids[self.starts[row] : self.starts[row + 1]]


def neighbors(vectors: ArrayLike, k: int = 10) -> Hits:
    """The ``k`` other rows nearest to each row by cosine: ``(n, width)`` gives hits ``(n, min(k, n - 1))``.

    >>> neighbors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], k=1).ids.tolist()
    [[2], [2], [0]]
    """
    rows = numeric_rows(vectors, "vectors")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    return without_self(search(rows, rows, k=k + 1)) if len(rows) else Hits(*search(rows, rows, k=k))


def without_self(hits: Hits) -> Hits:
    """Hits ``(n, k + 1)`` of rows among themselves, without each row's own id: ``(n, k)``.

    A row that is not among its own hits, because as many equal ones come before it, loses its last hit.
    """
    is_self = hits.ids == np.arange(len(hits.ids))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    shape = len(hits.ids), hits.ids.shape[1] - 1
    return Hits(hits.ids[~is_self].reshape(shape), hits.scores[~is_self].reshape(shape))


def neighbor_pairs(hits: Hits, *, rows: Ids | None = None, threshold: float | None = None) -> Pairs:
    """The pairs that hits ``(n, k)`` make with the rows they were found for, each once, best first.

    ``rows`` ``(n,)`` says which these are; by default all, from 0. Ids of -1 are no hits.

    >>> neighbor_pairs(neighbors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], k=1)).right.tolist()
    [2, 2]
    """
    n, k = hits.ids.shape
    ends, ids, scores = np.repeat(np.arange(n) if rows is None else rows, k), hits.ids.ravel(), hits.scores.ravel()
    good = (ids >= 0) & (ids != ends)
    if threshold is not None:
        good &= scores >= np.float32(threshold)
    pairs = Pairs(np.minimum(ends, ids), np.maximum(ends, ids), scores)
    return best_first(different_pairs(pairs.take(good)))


def different_pairs(pairs: Pairs) -> Pairs:
    """Each pair once, with the first score it comes with.

    >>> pairs = Pairs(np.array([0, 1, 0]), np.array([2, 2, 2]), np.array([0.5, 0.4, 0.5], np.float32))
    >>> different_pairs(pairs).left.tolist()
    [0, 1]
    """
    n = int(pairs.right.max(initial=0)) + 1
    return pairs.take(np.unique(pairs.left * n + pairs.right, return_index=True)[1])


def neighbor_graph(pairs: Pairs, n: int) -> Graph:
    """The graph of ``n`` rows in which each of the pairs is an edge."""
    scores = np.concatenate([pairs.scores, pairs.scores])
    order = by_query(np.concatenate([pairs.left, pairs.right]), scores)
    ids = np.concatenate([pairs.right.astype(np.int32), pairs.left.astype(np.int32)])[order]
    counts = np.bincount(pairs.left, minlength=n) + np.bincount(pairs.right, minlength=n)
    return Graph(np.concatenate([[0], np.cumsum(counts)]), ids, scores[order])
