"""Exact nearest neighbours: blocked matrix products with a running top-k.

Memory is one block of scores plus the best ``k`` per query, whatever the number of vectors, so ``vectors`` may be a
memory-mapped file. What float32 rounding leaves open is settled in float64. Approximate indexes are not here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError
from twinvec.search.hits import Hits
from twinvec.search.measures import Measure, find_measure
from twinvec.search.rows import blocks_of, check_widths, checked_rows, lengths_of, numeric_rows
from twinvec.search.running import Candidates, RunningHits, first_hits
from twinvec.search.workers import Workers
from twinvec.types import Array

__all__ = ["checked_rows", "search"]

QUERY_ROWS, VECTOR_ROWS = 2048, 4096  # a block of scores is 32 MB; smaller ones keep BLAS from its best


def search(queries: ArrayLike, vectors: ArrayLike, *, k: int = 10, similarity: str = "cosine") -> Hits:
    """The ``k`` rows of ``vectors`` nearest to each query, best first; equal ones by id.

    ``queries`` is ``(n, width)`` or one ``(width,)``, ``vectors`` is ``(m, width)``; the hits are
    ``(n, min(k, m))``. Distances come out negated, so higher is nearer. The order is that of float64: where scores
    are nearer to each other than float32 can tell, it is computed again, for up to 64 beyond the best ``k``.

    >>> search([1.0, 0.1], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], k=2).ids.tolist()
    [[1, 2]]
    """
    asked, stored = numeric_rows(np.atleast_2d(queries), "queries"), numeric_rows(vectors, "vectors")
    check_widths(asked, stored)
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    measure = find_measure(similarity)
    k = min(k, len(stored))
    starts = range(0, max(len(asked), 1), QUERY_ROWS)
    return _joined([_search_part(asked[start : start + QUERY_ROWS], stored, k, measure=measure) for start in starts])


def _search_part(queries: Array, vectors: Array, k: int, *, measure: Measure) -> Hits:
    """``search`` for as many queries as are scored at once."""
    rows = np.ascontiguousarray(queries, dtype=np.float32)
    lengths = lengths_of(rows, "queries")
    if not (len(rows) and k):
        return Hits(np.empty((len(rows), k), dtype=np.int64), np.empty((len(rows), k), dtype=np.float32))
    asked = measure.prepare(rows, lengths)
    room = np.empty(len(asked) * min(VECTOR_ROWS, len(vectors)), dtype=np.float32)
    longest, slack = 0.0, np.zeros(len(asked), dtype=np.float32)
    with Workers() as workers:
        parts = workers.split(len(asked))
        running = [RunningHits(len(asked[part]), k) for part in parts]
        for block in blocks_of(vectors, VECTOR_ROWS):
            longest = max(longest, float(block.lengths.max()))
            slack = np.asarray(2 * measure.rounding(lengths, longest, asked.shape[1]), dtype=np.float32)
            out = room[: len(asked) * len(block.rows)].reshape(len(asked), -1)
            scores = measure.score(asked, measure.prepare(block.rows, block.lengths), out)
            starts = [block.start] * len(parts)
            workers.map(
                RunningHits.add, running, [scores[part] for part in parts], starts, [slack[part] for part in parts]
            )

        def settle(hits: RunningHits, part: slice) -> Hits:
            found = hits.sort(slack[part])
            return first_hits(_settled(found, queries[part], vectors, slack=slack[part], measure=measure), k)

        return _joined(workers.map(settle, running, parts))


def _settled(
    found: Candidates, queries: Array, vectors: Array, *, slack: NDArray[np.float32], measure: Measure
) -> Candidates:
    """Candidates in order. Of those nearer to the next than the slack it is found in float64; then ids decide."""
    rows, ids, scores = found
    is_near = (rows[1:] == rows[:-1]) & (scores[:-1] - scores[1:] <= slack[rows[1:]])
    unsure = np.flatnonzero(np.append(is_near, False) | np.append(False, is_near))
    if not len(unsure):
        return found
    pairs = queries[rows[unsure]].astype(np.float64), vectors[ids[unsure]].astype(np.float64)
    scores[unsure] = measure.exact(*pairs)
    # sorted runs stay where they are, so that sorting the unsure ones alone is enough
    order = unsure[np.lexsort((ids[unsure], -scores[unsure], rows[unsure]))]
    ids[unsure], scores[unsure] = ids[order], scores[order]
    return found


def _joined(parts: Sequence[Hits]) -> Hits:
    return Hits(np.concatenate([part.ids for part in parts]), np.concatenate([part.scores for part in parts]))
