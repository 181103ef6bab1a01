"""Exact nearest neighbours: blocked matrix products with a running top-k.

Memory is one block of scores plus the best ``k`` per query, whatever the number of vectors, so ``vectors``
may be a memory-mapped file. Approximate indexes are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, UnknownNameError
from twinvec.types import Array, Vectors
from twinvec.vectors import SIMILARITIES, unit_rows

__all__ = ["Hits", "search", "top_k"]

QUERY_ROWS, VECTOR_ROWS = 512, 4096  # a block of scores is 8 MB


class Hits(NamedTuple):
    """Row ``i`` answers query ``i``, best first. Both are ``(queries, k)``."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]


def top_k(scores: Vectors, k: int) -> Hits:
    """The ``k`` best columns of every row, best first: ``(n, m)`` gives two ``(n, min(k, m))``.

    Equal scores are listed by id, and of several tied for place ``k`` the lowest ids get in.

    >>> top_k(np.array([[0.1, 0.9, 0.5]], dtype=np.float32), k=2).ids
    array([[1, 2]])
    """
    k = min(k, scores.shape[1])
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k] if k else np.empty((len(scores), 0), dtype=np.int64)
    if 0 < k < scores.shape[1]:
        last = np.take_along_axis(scores, best, axis=1).min(axis=1)
        tied = np.flatnonzero(np.count_nonzero(scores >= last[:, None], axis=1) > k)
        best[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :k]
    best.sort(axis=1)  # the stable sort below then lists equal scores by id
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    ids = np.take_along_axis(best, order, axis=1)
    return Hits(ids, np.take_along_axis(scores, ids, axis=1))


def search(queries: ArrayLike, vectors: ArrayLike, *, k: int = 10, similarity: str = "cosine") -> Hits:
    """The ``k`` rows of ``vectors`` nearest to each query, best first.

    ``queries`` is ``(n, width)`` or one ``(width,)``, ``vectors`` is ``(m, width)``; the hits are
    ``(n, min(k, m))``. Distances come out negated, so higher is nearer.

    >>> search([1.0, 0.1], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], k=2).ids.tolist()
    [[1, 2]]
    """
    asked, stored = checked_rows(np.atleast_2d(queries), "queries"), checked_rows(vectors, "vectors")
    if asked.shape[1] != stored.shape[1]:
        raise InputError(
            f"The queries have width {asked.shape[1]}, the vectors {stored.shape[1]}.",
            hint="Use one model for both.",
        )
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    prepare, score = _measure(similarity)
    asked = prepare(asked.astype(np.float32, copy=False))
    hits = _nothing(len(asked))
    for start in range(0, len(stored), VECTOR_ROWS):
        block = prepare(stored[start : start + VECTOR_ROWS].astype(np.float32, copy=False))
        found = [top_k(score(part, block), k) for part in _parts(asked)]
        hits = _merge(hits, _shifted(found, start), k)
    return hits


def checked_rows(vectors: ArrayLike, name: str) -> Array:
    """The vectors as an array ``(n, width)`` of finite numbers, or an error that says what is wrong."""
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name} must be numbers of shape (n, width), got {array.dtype} of shape {array.shape}.",
            hint="Encode a list of texts to get them.",
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InputError(f"Row {row} of {name} holds NaN or infinity.", hint="Remove it, or encode it again.")
    return array


def _measure(name: str) -> tuple[Callable[[Vectors], Vectors], Callable[[Vectors, Vectors], Vectors]]:
    """What to do to each block once, and how to score two blocks."""
    if name not in SIMILARITIES:
        raise UnknownNameError("similarity", name, SIMILARITIES)
    if name == "cosine":  # normalise every row once, not once per block
        return unit_rows, SIMILARITIES["dot"]
    return (lambda rows: rows), SIMILARITIES[name]


def _parts(queries: Vectors) -> Iterator[Vectors]:
    return (queries[start : start + QUERY_ROWS] for start in range(0, max(len(queries), 1), QUERY_ROWS))


def _nothing(n_queries: int) -> Hits:
    return Hits(np.empty((n_queries, 0), dtype=np.int64), np.empty((n_queries, 0), dtype=np.float32))


def _shifted(parts: list[Hits], start: int) -> Hits:
    ids = np.concatenate([part.ids for part in parts]) + start
    return Hits(ids, np.concatenate([part.scores for part in parts]))


def _merge(left: Hits, right: Hits, k: int) -> Hits:
    """The best ``k`` of both; every id of ``left`` is below those of ``right``, so ties stay in order."""
    ids = np.concatenate([left.ids, right.ids], axis=1)
    best = top_k(np.concatenate([left.scores, right.scores], axis=1), k)
    return Hits(np.take_along_axis(ids, best.ids, axis=1), best.scores)
