"""Pairs and duplicates among many vectors in less than quadratic time: by the neighbours that an index finds.

Scores are exact, because every candidate is scored from the vectors. What the index does not find is missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError
from twinvec.search.building import build_index
from twinvec.search.duplicates import Duplicates, Keep, choose_duplicates, preference
from twinvec.search.graph import graph_of
from twinvec.search.index import Index, search_index
from twinvec.search.mining import MOST_PAIRS, check_limits
from twinvec.search.neighbors import different_pairs, neighbor_pairs
from twinvec.search.pairs import Pairs, best_first, join_pairs
from twinvec.search.rows import numeric_rows
from twinvec.types import Array, Ids

__all__ = ["approximate_duplicates", "approximate_pairs", "pairs_above"]

ROWS_AT_ONCE = 1024
MOST_NEIGHBORS = 1024
FIRST_NEIGHBORS = 16


def approximate_pairs(
    vectors: Array,
    k: int | None = 100,
    *,
    threshold: float | None = None,
    per_text: int = 10,
    index: Index | None = None,
) -> Pairs:
    """The best ``k`` pairs (None: all) among each row and its ``per_text`` nearest, by an index of ``vectors``.

    Made for ``(n, width)`` too many to compare all with all; ``index`` saves building one.
    """
    check_limits(k, threshold if threshold is not None else -1.0)
    if per_text < 1:
        raise InputError(f"per_text must be at least 1, got {per_text}.")
    rows, index = _ready(vectors, index)
    parts = _parts(np.arange(len(rows)))
    found = [_pairs_of(index, rows, part, per_text, threshold=threshold)[0] for part in parts]
    return best_first(different_pairs(join_pairs(found)), k)


def pairs_above(vectors: Array, threshold: float, *, index: Index | None = None) -> Pairs:
    """All pairs of at least this cosine that an index of ``vectors`` ``(n, width)`` finds.

    A row whose last neighbour still reaches the threshold is searched again, for four times as many, up to 1,024.
    """
    check_limits(None, threshold)
    rows, index = _ready(vectors, index)
    found, n_found = [], 0
    todo, k = np.arange(len(rows)), FIRST_NEIGHBORS
    while len(todo):
        unfinished = []
        for part in _parts(todo):
            pairs, is_cut = _pairs_of(index, rows, part, k, threshold=threshold)
            found.append(pairs)
            n_found += len(pairs.scores)
            unfinished.append(part[is_cut])
            if n_found > MOST_PAIRS:
                raise InputError(f"More than {MOST_PAIRS:,} pairs reach the threshold {threshold:g}.", hint="Raise it.")
        todo, k = np.concatenate(unfinished), 4 * k
        if k > MOST_NEIGHBORS or k >= len(rows):
            break
    return best_first(different_pairs(join_pairs(found)))


def approximate_duplicates(
    vectors: Array,
    threshold: float = 0.95,
    *,
    keep: Keep = "first",
    lengths: ArrayLike | None = None,
    index: Index | None = None,
) -> Duplicates:
    """``find_duplicates`` by the neighbours that an index finds; a few duplicates may be missed."""
    order = preference(len(vectors), keep, lengths)
    graph = graph_of([pairs_above(vectors, threshold, index=index)], len(vectors))
    return choose_duplicates(graph, order, vectors)


def _ready(vectors: Array, index: Index | None) -> tuple[Array, Index]:
    rows = numeric_rows(vectors, "vectors")
    if index is None:
        index = build_index(rows)
    return rows, index


def _parts(rows: Ids) -> list[Ids]:
    return [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]


def _pairs_of(
    index: Index, vectors: Array, rows: Ids, k: int, *, threshold: float | None
) -> tuple[Pairs, NDArray[np.bool_]]:
    """Pairs of some rows ``(m,)`` with their ``k`` nearest, and which rows may have more that reach the threshold."""
    hits = search_index(index, vectors[rows], k=k + 1, vectors=vectors)  # one more: the row itself
    is_cut = hits.scores[:, -1] >= -1.0 if threshold is None else hits.scores[:, -1] >= np.float32(threshold)
    return neighbor_pairs(hits, rows=rows, threshold=threshold), is_cut
