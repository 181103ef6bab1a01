"""Candidates that something inexact found, scored again from the vectors themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.search.hits import Hits
from twinvec.search.measures import find_measure
from twinvec.search.rows import check_widths, numeric_rows
from twinvec.types import Array, Ids

__all__ = ["rescored"]

ROWS_AT_ONCE = 8192  # 25 MB of float64 rows of width 384
NOTHING = -1  # instead of an id, where fewer candidates were found than asked for


def rescored(queries: ArrayLike, ids: Ids, vectors: Array, *, k: int, similarity: str = "cosine") -> Hits:
    """The ``k`` best of some candidates for each query, scored exactly, best first; equal ones by id.

    ``queries`` is ``(n, width)``, ``ids`` ``(n, m)`` with -1 for none, ``vectors`` ``(all, width)``, which may be a
    memory-mapped file of any type of number. Where fewer than ``k`` are left, ids are -1 and scores minus infinity.

    >>> rescored([[1.0, 0.0]], np.array([[0, 2, -1]]), np.array([[0.0, 1.0], [5.0, 0.0], [1.0, 1.0]]), k=2).ids.tolist()
    [[2, 0]]
    """
    asked, stored = numeric_rows(queries, "queries"), numeric_rows(vectors, "vectors")
    check_widths(asked, stored)
    if ids.size and ids.max() >= len(stored):
        raise InputError(
            f"A candidate has the id {ids.max()}, but there are {len(stored)} vectors.",
            hint="Give the vectors from which the index was built.",
        )
    ids = np.sort(ids, axis=1)  # equal scores then come by id
    exact = find_measure(similarity).exact
    scores = np.full(ids.shape, -np.inf, dtype=np.float32)
    n_at_once = max(1, ROWS_AT_ONCE // max(ids.shape[1], 1))
    for start in range(0, len(ids), n_at_once):
        part = slice(start, start + n_at_once)
        rows, places = np.nonzero(ids[part] != NOTHING)
        different, inverse = np.unique(ids[part][rows, places], return_inverse=True)  # rising: kinder to a disk
        found = np.asarray(stored[different], dtype=np.float64)[inverse.reshape(-1)]
        scores[part][rows, places] = exact(asked[part][rows].astype(np.float64), found)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Hits(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))
