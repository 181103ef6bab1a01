"""Exact nearest neighbors over shards: each is searched by itself, here or on a Ray cluster; the best are merged."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twinvec.bulk.ray_cluster import run_tasks
from twinvec.bulk.reading import Bulk, open_bulk
from twinvec.bulk.shard_reading import open_shard, vectors_in
from twinvec.errors import InputError
from twinvec.search import Hits, search
from twinvec.types import Array, Vectors

__all__ = ["check_searchable", "merge_hits", "search_shards", "shard_vectors"]

SEARCHABLE = "float32", "int8"


class _Question(NamedTuple):
    """What is asked of every shard; queries are ``(n, width)``."""

    queries: Vectors
    k: int
    similarity: str


def search_shards(
    folder: str | PathLike[str],
    queries: ArrayLike,
    *,
    k: int = 10,
    similarity: str = "cosine",
    ray: str | None = None,
) -> Hits:
    """The ``k`` texts of a bulk job nearest to each query ``(n, width)``, best first: ``(n, min(k, texts))``.

    ``ids`` are numbers of texts, for :meth:`Bulk.take`. ``ray`` is the address of a cluster whose machines all see the
    folder under this name.
    """
    bulk = open_bulk(folder)
    asked = np.atleast_2d(np.asarray(queries, dtype=np.float32))
    check_searchable(bulk)
    if asked.ndim != 2 or asked.shape[1] != bulk.result.width:
        raise InputError(
            f"The queries have the shape {asked.shape}, the vectors of {folder} the width {bulk.result.width}.",
            hint="Embed the queries with the model of the folder.",
        )
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    if len(asked):
        search(asked, asked[:1], k=1, similarity=similarity)  # a wrong measure or query shows here, before any task
    used = bulk.used()
    tasks = (
        (bulk.path(place), shard.numbers, None if used is None else used.seen(shard.numbers))
        for place, shard in enumerate(bulk.result.shards)
    )
    best = _no_hits(len(asked))
    for hits in run_tasks(_hits, _Question(asked, k, similarity), tasks, ray=ray):
        best = merge_hits(best, hits, k)
    return best


def merge_hits(one: Hits, other: Hits, k: int) -> Hits:
    """The best ``k`` of both, equal scores by id; which comes first makes no difference.

    >>> left = Hits(np.array([[7, 3]]), np.array([[0.9, 0.5]], dtype=np.float32))
    >>> right = Hits(np.array([[4, 1]]), np.array([[0.9, 0.1]], dtype=np.float32))
    >>> merge_hits(left, right, 3).ids.tolist()
    [[4, 7, 3]]
    """
    ids = np.concatenate([one.ids, other.ids], axis=1)
    scores = np.concatenate([one.scores, other.scores], axis=1)
    order = np.lexsort((ids, -scores), axis=1)[:, :k]
    return Hits(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))


def check_searchable(bulk: Bulk) -> None:
    """Refuse vectors of a type that cannot be compared as they are."""
    output = bulk.manifest.job.settings.get("output", "float32")
    if output not in SEARCHABLE:
        raise InputError(
            f"{bulk.folder} holds {output} vectors.", hint=f"These can be searched: {', '.join(SEARCHABLE)}."
        )


def shard_vectors(path: Path, numbers: range) -> Vectors:
    """The vectors of a shard as float32, ``(n, width)``; mapped, not copied, where the file allows it.

    ``numbers`` are those of its texts by the manifest: one that holds another number of them is refused.
    """
    vectors: Array = vectors_in(open_shard(path).read(["vector"]))
    if len(vectors) != len(numbers):
        raise InputError(
            f"The shard {path} holds {len(vectors)} vectors, not {len(numbers)} as the manifest says.",
            hint="Run the job again: it is found and redone.",
        )
    return vectors.astype(np.float32, copy=False)


def _hits(question: _Question, path: Path, span: range, used: Array | None) -> Hits:
    queries, k, similarity = question
    vectors = shard_vectors(path, span)
    numbers = np.asarray(span)
    if used is not None:
        vectors, numbers = vectors[used], numbers[used]
    if not len(vectors):
        return _no_hits(len(queries))
    hits = search(queries, vectors, k=min(k, len(vectors)), similarity=similarity)
    return Hits(numbers[hits.ids], hits.scores)


def _no_hits(n_queries: int) -> Hits:
    return Hits(np.empty((n_queries, 0), dtype=np.int64), np.empty((n_queries, 0), dtype=np.float32))
