"""Nearest neighbors of every row, the graph they form, and near-duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import KEEPS, Keep
from twinvec.errors import InputError, check_at_least, check_name
from twinvec.search.exact import Hits, search
from twinvec.search.pairs import Pairs, all_pairs_above, best_first, exact_cosines
from twinvec.types import Array, Ids
from twinvec.vectors import checked_rows, numeric_rows

__all__ = [
    "Duplicates",
    "Graph",
    "choose_duplicates",
    "different_pairs",
    "duplicate_rows",
    "graph_of",
    "neighbor_pairs",
    "neighbors",
    "preference",
    "with_equal_texts",
]


class Graph(NamedTuple):
    """The neighbors of row ``i`` are ``ids[starts[i] : starts[i + 1]]``, sorted; edges are stored in both directions.

    ``starts`` is ``(n + 1,)``, ``ids`` ``(2 * edges,)``.
    """

    starts: Ids
    ids: NDArray[np.int32]

    @property
    def counts(self) -> Ids:
        """The number of neighbors of each row, ``(n,)``."""
        return np.diff(self.starts)

    def of(self, row: int) -> NDArray[np.int32]:
        """The neighbors of one row."""
        return self.ids[self.starts[row] : self.starts[row + 1]]


def graph_of(pairs: Iterable[Pairs], n: int) -> Graph:
    """The graph of ``n`` rows with an edge for each pair of all lists; no pair may occur twice.

    >>> graph = graph_of([Pairs(np.array([0, 1]), np.array([2, 2]), np.ones(2, np.float32))], 3)
    >>> [graph.of(row).tolist() for row in range(3)]
    [[2], [2], [0, 1]]
    """
    # Each edge is one integer, with its ends in the upper and lower half: sorting in place needs no extra memory.
    parts = [((part.left << 32) + part.right, (part.right << 32) + part.left) for part in pairs]
    edges = np.concatenate([np.empty(0, dtype=np.int64), *(part for both in parts for part in both)])
    del parts
    edges.sort()
    counts = np.bincount(edges >> 32, minlength=n)
    return Graph(np.concatenate([[0], np.cumsum(counts)]), edges.astype(np.int32))  # the cast keeps the lower half


def neighbors(vectors: ArrayLike, k: int = 10) -> Hits:
    """The ``k`` nearest other rows of each row of ``(n, width)`` by cosine, as hits ``(n, min(k, n - 1))``.

    >>> neighbors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], k=1).ids.tolist()
    [[2], [2], [0]]
    """
    rows = checked_rows(vectors, "vectors")
    check_at_least(1, k=k)
    return without_self(search(rows, rows, k=k + 1)) if len(rows) else search(rows, rows, k=k)


def without_self(hits: Hits) -> Hits:
    """Remove each row's own id from hits ``(n, k + 1)`` of rows among themselves: ``(n, k)``.

    A row that is missing from its own hits, because too many equal rows come before it, loses its last hit.
    """
    is_self = hits.ids == np.arange(len(hits.ids))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    shape = len(hits.ids), hits.ids.shape[1] - 1
    return Hits(hits.ids[~is_self].reshape(shape), hits.scores[~is_self].reshape(shape))


def neighbor_pairs(hits: Hits, *, rows: Ids | None = None, threshold: float | None = None) -> Pairs:
    """The pairs of each row with its hits ``(n, k)``, each pair once, best first.

    ``rows`` ``(n,)`` are the rows of the queries (default: 0, 1, ...). Ids of -1 are ignored.

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
    """Each pair once, with its first score.

    >>> pairs = Pairs(np.array([0, 1, 0]), np.array([2, 2, 2]), np.array([0.5, 0.4, 0.5], np.float32))
    >>> different_pairs(pairs).left.tolist()
    [0, 1]
    """
    n = int(pairs.right.max(initial=0)) + 1
    return pairs.take(np.unique(pairs.left * n + pairs.right, return_index=True)[1])


class Duplicates(NamedTuple):
    """Rows to keep, ``(kept,)``, sorted; rows to remove, and for each the kept row it repeats and their score."""

    kept: Ids
    removed: Ids
    repeated: Ids
    scores: NDArray[np.float32]


def duplicate_rows(
    vectors: ArrayLike, threshold: float = 0.95, *, keep: Keep = "first", lengths: ArrayLike | None = None
) -> Duplicates:
    """Rows of ``vectors`` ``(n, width)`` that repeat others with a cosine of at least ``threshold``; exact search.

    ``keep`` prefers the first row, or the one with the longest text, by ``lengths`` ``(n,)``.

    >>> duplicate_rows([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]]).removed.tolist()
    [2]
    """
    rows = numeric_rows(vectors, "vectors")
    order = preference(len(rows), keep, lengths)
    return choose_duplicates(graph_of(all_pairs_above(rows, threshold), len(rows)), order, rows)


def choose_duplicates(graph: Graph, order: Ids, vectors: Array) -> Duplicates:
    """Choose which rows of ``vectors`` ``(n, width)`` to keep, by a graph of similar rows and an ``order`` ``(n,)``."""
    repeated = np.full(len(order), -1, dtype=np.int64)  # the kept row that each row repeats; itself if it is kept
    for row in order[graph.counts[order] > 0].tolist():
        if repeated[row] < 0:
            near = graph.of(row)
            repeated[near[repeated[near] < 0]] = row
            repeated[row] = row
    is_removed = (repeated >= 0) & (repeated != np.arange(len(order)))
    removed = np.flatnonzero(is_removed)
    scores = exact_cosines(vectors, removed, repeated[removed])
    return Duplicates(np.flatnonzero(~is_removed), removed, repeated[removed], scores)


def with_equal_texts(texts: Sequence[str], different: Sequence[str], found: Duplicates) -> Duplicates:
    """Duplicates among the ``different`` texts as rows of all ``texts``; equal texts repeat the first of them.

    >>> alone = Duplicates(np.array([0, 1]), *(np.empty(0, dtype=np.int64),) * 2, np.empty(0, dtype=np.float32))
    >>> with_equal_texts(["a", "b", "a"], ["a", "b"], alone).repeated.tolist()
    [0]
    """
    number = {text: index for index, text in enumerate(different)}
    indices = np.fromiter((number[text] for text in texts), dtype=np.int64, count=len(texts))
    firsts = np.full(len(different), len(texts))
    np.minimum.at(firsts, indices, np.arange(len(texts)))
    kept, scores = np.arange(len(different)), np.ones(len(different), dtype=np.float32)
    kept[found.removed], scores[found.removed] = found.repeated, found.scores
    repeated = firsts[kept[indices]]
    is_removed = repeated != np.arange(len(texts))
    removed = np.flatnonzero(is_removed)
    return Duplicates(np.flatnonzero(~is_removed), removed, repeated[removed], scores[indices[removed]])


def preference(n: int, keep: Keep, lengths: ArrayLike | None) -> Ids:
    """The rows from most to least preferred, ``(n,)``."""
    check_name("text to keep", keep, KEEPS)
    if keep == "first":
        return np.arange(n)
    longest = np.asarray([] if lengths is None else lengths)
    if longest.shape != (n,):
        raise InputError(f"keep='longest' needs lengths of shape ({n},), got shape {longest.shape}.")
    return np.argsort(-longest, kind="stable")
