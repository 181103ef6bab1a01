"""Exact search and most similar pairs over shards, on this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twinvec.bulk.ray import run_tasks
from twinvec.bulk.read import Bulk, open_bulk
from twinvec.bulk.shards import open_shard, vectors_in
from twinvec.errors import InputError, check_at_least
from twinvec.search.exact import Hits, no_hits, search
from twinvec.search.pairs import Pairs, best_first, check_limits, join_pairs, no_pairs
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import unit_rows

__all__ = ["merge_hits", "pairs_of_shards", "search_shards"]

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
    check_at_least(1, k=k)
    if len(asked):
        search(asked, asked[:1], k=1, similarity=similarity)  # a wrong measure or query shows here, before any task
    used = bulk.used()
    tasks = (
        (bulk.path(index), shard.numbers, None if used is None else used.seen(shard.numbers))
        for index, shard in enumerate(bulk.result.shards)
    )
    best = no_hits(len(asked))
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
    both = Hits(np.concatenate([one.ids, other.ids], axis=1), np.concatenate([one.scores, other.scores], axis=1))
    return both.take(np.lexsort((both.ids, -both.scores), axis=1)[:, :k])


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
        return no_hits(len(queries))
    hits = search(queries, vectors, k=min(k, len(vectors)), similarity=similarity)
    return Hits(numbers[hits.ids], hits.scores)


BLOCK_TEXTS = 1 << 16  # 100 MB of vectors of width 384
TILE_ROWS = 2048  # of a block, multiplied at once: 16 MB of scores
ROUNDING = 1e-6  # more than the float32 products of rows of length 1 are off


class ShardPart(NamedTuple):
    """A shard in a block: its file, the numbers of its texts, and which of its texts are in use (None: all)."""

    path: Path
    numbers: range
    used: Array | None


def pairs_of_shards(
    folder: str | PathLike[str], *, k: int = 100, threshold: float | None = None, ray: str | None = None
) -> Pairs:
    """The ``k`` pairs of different texts of a bulk job with the highest cosine, best first; left is the lower number.

    With ``threshold``, only pairs of at least that cosine. Rows that repeat a text make no pair. Which of several pairs
    within 1e-6 of place ``k`` get in is not defined. ``ray`` as in :func:`search_shards`.
    """
    check_limits(k, threshold)
    bulk = open_bulk(folder)
    check_searchable(bulk)
    blocks = list(_blocks(bulk))
    best = no_pairs()
    floor = -np.inf if threshold is None else threshold

    def tasks() -> Iterator[tuple[object, ...]]:
        for i, left in enumerate(blocks):
            for right in blocks[i:]:
                least = float(best.scores[-1]) if len(best.scores) == k else floor  # as it stands when the task starts
                yield left, None if right is left else right, least

    for found in run_tasks(_block_pairs, k, tasks(), ray=ray):
        best = best_first(join_pairs([best, found]), k)
    return best.take(best.scores >= np.float32(floor))


def _blocks(bulk: Bulk) -> Iterator[list[ShardPart]]:
    """Shards that follow each other, together as many texts as one task takes."""
    used = bulk.used()
    block: list[ShardPart] = []
    n_texts = 0
    for index, shard in enumerate(bulk.result.shards):
        if block and n_texts + shard.n > BLOCK_TEXTS:
            yield block
            block, n_texts = [], 0
        block.append(ShardPart(bulk.path(index), shard.numbers, None if used is None else used.seen(shard.numbers)))
        n_texts += shard.n
    if block:
        yield block


def _block_pairs(k: int, left: Sequence[ShardPart], right: Sequence[ShardPart] | None, least: float) -> Pairs:
    """The best pairs between two blocks, or within one."""
    one = _loaded(left)
    other = one if right is None else _loaded(right)
    best = no_pairs()
    for i in range(0, len(one[0]), TILE_ROWS):
        for j in range(i if right is None else 0, len(other[0]), TILE_ROWS):
            at_least = max(least, float(best.scores[-1]) if len(best.scores) == k else -np.inf)
            scores = one[0][i : i + TILE_ROWS] @ other[0][j : j + TILE_ROWS].T
            if right is None and i == j:
                scores[np.tri(len(scores), dtype=np.bool_)] = -np.inf  # each pair once, and no text with itself
            rows, columns = _candidates(scores, k, at_least=at_least - ROUNDING)
            if len(rows):
                best = best_first(join_pairs([best, _rescored(one, other, rows + i, columns + j)]), k)
    return best


def _loaded(block: Sequence[ShardPart]) -> tuple[Vectors, Ids]:
    """The vectors of a block, scaled to length 1, and their numbers."""
    vectors, numbers = [], []
    for part in block:
        found = shard_vectors(part.path, part.numbers)
        kept = slice(None) if part.used is None else part.used
        vectors.append(unit_rows(found[kept]))
        numbers.append(np.asarray(part.numbers)[kept])
    return np.concatenate(vectors), np.concatenate(numbers)


def _candidates(scores: Vectors, k: int, *, at_least: float) -> tuple[Ids, Ids]:
    """Rows and columns of the at most ``k`` best scores that reach ``at_least``."""
    indices = np.flatnonzero(scores >= np.float32(max(at_least, float(np.finfo(np.float32).min))))
    if len(indices) > k:
        indices = indices[np.argpartition(-scores.ravel()[indices], k - 1)[:k]]
    rows, columns = np.divmod(indices, scores.shape[1])
    return rows, columns


def _rescored(one: tuple[Vectors, Ids], other: tuple[Vectors, Ids], rows: Ids, columns: Ids) -> Pairs:
    """Pairs with scores free of the rounding that depends on a pair's place in its tile."""
    products = np.einsum("ij,ij->i", one[0][rows], other[0][columns], dtype=np.float64)
    return Pairs(one[1][rows], other[1][columns], products.astype(np.float32))
