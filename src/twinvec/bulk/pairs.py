"""The most similar pairs over shards: blocks of shards against blocks, here or on a Ray cluster, and a merge.

Exact: every block meets every other once. The worst score among the best so far is the bar for the blocks to come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twinvec.bulk.ray_cluster import run_tasks
from twinvec.bulk.reading import Bulk, open_bulk
from twinvec.bulk.search import check_searchable, shard_vectors
from twinvec.errors import InputError
from twinvec.search import Pairs
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import unit_rows

__all__ = ["merge_pairs", "pairs_of_shards"]

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
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    if threshold is not None and not np.isfinite(threshold):
        raise InputError(f"threshold must be a number, got {threshold}.")
    bulk = open_bulk(folder)
    check_searchable(bulk)
    blocks = list(_blocks(bulk))
    best = _no_pairs()
    floor = -np.inf if threshold is None else threshold

    def tasks() -> Iterator[tuple[object, ...]]:
        for i, left in enumerate(blocks):
            for right in blocks[i:]:
                bar = float(best.scores[-1]) if len(best.scores) == k else floor  # as it stands when the task starts
                yield left, None if right is left else right, bar

    for found in run_tasks(_block_pairs, k, tasks(), ray=ray):
        best = merge_pairs(best, found, k)
    reached = best.scores >= np.float32(floor)
    return Pairs(best.left[reached], best.right[reached], best.scores[reached])


def merge_pairs(one: Pairs, other: Pairs, k: int) -> Pairs:
    """The best ``k`` of both; ties by left, then right."""
    left, right = np.concatenate([one.left, other.left]), np.concatenate([one.right, other.right])
    scores = np.concatenate([one.scores, other.scores])
    order = np.lexsort((right, left, -scores))[:k]
    return Pairs(left[order], right[order], scores[order])


def _blocks(bulk: Bulk) -> Iterator[list[ShardPart]]:
    """Shards that follow each other, together as many texts as one task takes."""
    used = bulk.used()
    block: list[ShardPart] = []
    n_texts = 0
    for place, shard in enumerate(bulk.result.shards):
        if block and n_texts + shard.n > BLOCK_TEXTS:
            yield block
            block, n_texts = [], 0
        block.append(ShardPart(bulk.path(place), shard.numbers, None if used is None else used.seen(shard.numbers)))
        n_texts += shard.n
    if block:
        yield block


def _block_pairs(k: int, left: Sequence[ShardPart], right: Sequence[ShardPart] | None, bar: float) -> Pairs:
    """The best pairs between two blocks, or within one."""
    one = _loaded(left)
    other = one if right is None else _loaded(right)
    best = _no_pairs()
    for i in range(0, len(one[0]), TILE_ROWS):
        for j in range(i if right is None else 0, len(other[0]), TILE_ROWS):
            at_least = max(bar, float(best.scores[-1]) if len(best.scores) == k else -np.inf)
            scores = one[0][i : i + TILE_ROWS] @ other[0][j : j + TILE_ROWS].T
            if right is None and i == j:
                scores[np.tri(len(scores), dtype=np.bool_)] = -np.inf  # each pair once, and no text with itself
            rows, columns = _candidates(scores, k, at_least=at_least - ROUNDING)
            if len(rows):
                best = merge_pairs(best, _rescored(one, other, rows + i, columns + j), k)
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
    """Rows and columns of the at most ``k`` best scores that reach the bar."""
    places = np.flatnonzero(scores >= np.float32(max(at_least, float(np.finfo(np.float32).min))))
    if len(places) > k:
        places = places[np.argpartition(-scores.ravel()[places], k - 1)[:k]]
    rows, columns = np.divmod(places, scores.shape[1])
    return rows, columns


def _rescored(one: tuple[Vectors, Ids], other: tuple[Vectors, Ids], rows: Ids, columns: Ids) -> Pairs:
    """Pairs with scores free of the rounding that depends on a pair's place in its tile."""
    products = np.einsum("ij,ij->i", one[0][rows], other[0][columns], dtype=np.float64)
    return Pairs(one[1][rows], other[1][columns], products.astype(np.float32))


def _no_pairs() -> Pairs:
    empty = np.empty(0, dtype=np.int64)
    return Pairs(empty, empty, np.empty(0, dtype=np.float32))
