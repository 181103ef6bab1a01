"""Exact search and the most similar pairs over shards, locally or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twinvec.bulk.ray import run_tasks
from twinvec.bulk.read import Bulk, open_bulk
from twinvec.bulk.shards import REBUILD, open_shard, vectors_in
from twinvec.errors import InputError, check_at_least
from twinvec.search.exact import Hits, no_hits, search
from twinvec.search.pairs import Pairs, best_first, check_limits, join_pairs, no_pairs
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import unit_rows

__all__ = ["merge_hits", "pairs_of_shards", "search_shards"]

SEARCHABLE = "float32", "int8"


class _Question(NamedTuple):
    """The search to run on every shard; queries are ``(n, width)``."""

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

    ``ids`` are text numbers, for :meth:`Bulk.take`. ``ray`` is the address of a cluster whose machines can all read
    the folder at the same path.
    """
    bulk = open_bulk(folder)
    rows = np.atleast_2d(np.asarray(queries, dtype=np.float32))
    check_searchable(bulk)
    if rows.ndim != 2 or rows.shape[1] != bulk.result.width:
        raise InputError(
            f"The queries have the shape {rows.shape}, but the vectors in {folder} have the width {bulk.result.width}.",
            hint="Embed the queries with the same model as the folder.",
        )
    check_at_least(1, k=k)
    if len(rows):
        search(rows, rows[:1], k=1, similarity=similarity)  # refuse a wrong similarity or query before any task
    best = no_hits(len(rows))
    tasks = ((part,) for part in _parts(bulk))
    for hits in run_tasks(_hits, _Question(rows, k, similarity), tasks, ray=ray):
        best = merge_hits(best, hits, k)
    return best


def merge_hits(one: Hits, other: Hits, k: int) -> Hits:
    """The best ``k`` hits of both, ties by id; the order of the arguments does not matter.

    >>> left = Hits(np.array([[7, 3]]), np.array([[0.9, 0.5]], dtype=np.float32))
    >>> right = Hits(np.array([[4, 1]]), np.array([[0.9, 0.1]], dtype=np.float32))
    >>> merge_hits(left, right, 3).ids.tolist()
    [[4, 7, 3]]
    """
    both = Hits(np.concatenate([one.ids, other.ids], axis=1), np.concatenate([one.scores, other.scores], axis=1))
    return both.take(np.lexsort((both.ids, -both.scores), axis=1)[:, :k])


def check_searchable(bulk: Bulk) -> None:
    """Refuse vectors of a type that cannot be searched."""
    output = bulk.manifest.job.settings.get("output", "float32")
    if output not in SEARCHABLE:
        raise InputError(
            f"Cannot search the {output} vectors in {bulk.folder}.", hint=f"Use one of: {', '.join(SEARCHABLE)}."
        )


class ShardPart(NamedTuple):
    """The texts of a shard that are in use: its file, the numbers of its texts, and a mask (None: all are used)."""

    path: Path
    numbers: range
    used: Array | None

    def read(self) -> tuple[Vectors, Ids]:
        """The vectors as float32, ``(n, width)``, memory-mapped if the file allows it, and their text numbers."""
        vectors: Array = vectors_in(open_shard(self.path).read(["vector"]))
        if len(vectors) != len(self.numbers):
            raise InputError(
                f"The shard {self.path} holds {len(vectors)} vectors, but the manifest says {len(self.numbers)}.",
                hint=REBUILD,
            )
        kept = slice(None) if self.used is None else self.used
        return vectors.astype(np.float32, copy=False)[kept], np.asarray(self.numbers)[kept]


def _parts(bulk: Bulk) -> Iterator[ShardPart]:
    used = bulk.used()
    for index, shard in enumerate(bulk.result.shards):
        yield ShardPart(bulk.path(index), shard.numbers, None if used is None else used.seen(shard.numbers))


def _hits(question: _Question, part: ShardPart) -> Hits:
    queries, k, similarity = question
    vectors, numbers = part.read()
    if not len(vectors):
        return no_hits(len(queries))
    hits = search(queries, vectors, k=min(k, len(vectors)), similarity=similarity)
    return Hits(numbers[hits.ids], hits.scores)


BLOCK_TEXTS = 1 << 16  # 100 MB of vectors of width 384
TILE_ROWS = 2048  # rows of a block multiplied at a time: 16 MB of scores
ROUNDING = 1e-6  # more than the float32 error of a product of unit rows


def pairs_of_shards(
    folder: str | PathLike[str], *, k: int = 100, threshold: float | None = None, ray: str | None = None
) -> Pairs:
    """The ``k`` pairs of unique texts of a bulk job with the highest cosine, best first; left is the lower number.

    With ``threshold``, only pairs of at least that cosine. Rows that repeat a text make no pair. Among pairs within
    1e-6 of rank ``k``, which ones are returned is undefined. ``ray`` as in :func:`search_shards`.
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
                least = float(best.scores[-1]) if len(best.scores) == k else floor  # at the start of the task
                yield left, None if right is left else right, least

    for found in run_tasks(_block_pairs, k, tasks(), ray=ray):
        best = best_first(join_pairs([best, found]), k)
    return best.take(best.scores >= np.float32(floor))


def _blocks(bulk: Bulk) -> Iterator[list[ShardPart]]:
    """Yield consecutive shards in blocks, one block per side of a task."""
    block: list[ShardPart] = []
    n_texts = 0
    for part in _parts(bulk):
        if block and n_texts + len(part.numbers) > BLOCK_TEXTS:
            yield block
            block, n_texts = [], 0
        block.append(part)
        n_texts += len(part.numbers)
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
                scores[np.tri(len(scores), dtype=np.bool_)] = -np.inf  # each pair once, no text with itself
            rows, columns = _candidates(scores, k, at_least=at_least - ROUNDING)
            if len(rows):
                best = best_first(join_pairs([best, _rescored(one, other, rows + i, columns + j)]), k)
    return best


def _loaded(block: Sequence[ShardPart]) -> tuple[Vectors, Ids]:
    """The vectors of a block, scaled to length 1, and their text numbers."""
    loaded = [part.read() for part in block]
    return np.concatenate([unit_rows(vectors) for vectors, _ in loaded]), np.concatenate([each for _, each in loaded])


def _candidates(scores: Vectors, k: int, *, at_least: float) -> tuple[Ids, Ids]:
    """Rows and columns of at most ``k`` best scores, all of them ``at_least`` or more."""
    indices = np.flatnonzero(scores >= np.float32(max(at_least, float(np.finfo(np.float32).min))))
    if len(indices) > k:
        indices = indices[np.argpartition(-scores.ravel()[indices], k - 1)[:k]]
    rows, columns = np.divmod(indices, scores.shape[1])
    return rows, columns


def _rescored(one: tuple[Vectors, Ids], other: tuple[Vectors, Ids], rows: Ids, columns: Ids) -> Pairs:
    """The pairs with exact scores, which do not depend on their position in a tile."""
    products = np.einsum("ij,ij->i", one[0][rows], other[0][columns], dtype=np.float64)
    return Pairs(one[1][rows], other[1][columns], products.astype(np.float32))
