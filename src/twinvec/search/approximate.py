"""Build an index, measure its recall, and use it to find pairs and duplicates in less than quadratic time."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import Keep
from twinvec.errors import InputError, check_at_least
from twinvec.progress import Progress
from twinvec.search.exact import join_hits, search
from twinvec.search.index import Index, IndexSettings, check_queries, choose_index, sample_size, search_index
from twinvec.search.index_files import new_index
from twinvec.search.neighbors import (
    Duplicates,
    choose_duplicates,
    different_pairs,
    graph_of,
    neighbor_pairs,
    preference,
)
from twinvec.search.pairs import MOST_PAIRS, Pairs, best_first, check_limits, join_pairs
from twinvec.types import Array, Ids
from twinvec.vectors import numeric_rows

__all__ = [
    "Recall",
    "approximate_duplicates",
    "approximate_pairs",
    "build_index",
    "fill_index",
    "measure_recall",
    "pairs_above",
    "sample_rows",
    "tune_effort",
]

BLOCK_ROWS = 65_536  # 100 MB of width 384 in float32
SAMPLE_PIECES = 256


class RowSource(Protocol):
    """Rows that can be sliced: an array, a memory-mapped file, or an object that computes them on demand."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, width)``."""

    def __getitem__(self, rows: slice, /) -> Array: ...


def build_index(
    vectors: RowSource,
    settings: IndexSettings | None = None,
    *,
    max_memory: int | None = None,
    progress: bool | None = None,
) -> Index:
    """Build an index of all ``vectors`` ``(n, width)``, reading one block at a time.

    Default settings depend on the number of vectors and on ``max_memory``, in bytes.
    """
    if len(vectors.shape) != 2:
        raise InputError(f"vectors must have the shape (n, width), got {vectors.shape}.")
    n, width = vectors.shape
    settings = settings or choose_index(n, width, max_memory)
    index = new_index(settings, width)
    if not index.is_trained:
        index.train(sample_rows(vectors, sample_size(settings, n)))
    fill_index(index, vectors, progress=progress)
    return index


def fill_index(index: Index, vectors: RowSource, *, stop: int | None = None, progress: bool | None = None) -> None:
    """Add the rows of ``vectors`` ``(n, width)`` that a trained index lacks, up to ``stop`` (default: all).

    To resume a long build after a crash, fill the index in steps and save it after each.
    """
    n = vectors.shape[0] if stop is None else min(stop, vectors.shape[0])
    if len(index) > vectors.shape[0]:
        raise InputError(
            f"The index already has {len(index)} vectors, but only {vectors.shape[0]} were passed.",
            hint="Pass the vectors the index was started with, and any new ones after them.",
        )
    with Progress(n - len(index), "indexing", shown=progress) as bar:
        for start in range(len(index), n, BLOCK_ROWS):
            block = vectors[start : min(start + BLOCK_ROWS, n)]
            index.add(block)
            bar.advance(len(block))


def sample_rows(vectors: RowSource, count: int) -> Array:
    """About ``count`` rows ``(count, width)``, in evenly spaced runs, which read faster from disk than single rows."""
    n = vectors.shape[0]
    if count >= n:
        return np.asarray(vectors[0:n])
    size = -(-count // SAMPLE_PIECES)
    starts = np.linspace(0, n - size, -(-count // size)).astype(np.int64)
    return np.concatenate([vectors[start : start + size] for start in starts.tolist()])[:count]


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
    """The best ``k`` pairs (None: all) among each row and its ``per_text`` nearest neighbors in an index.

    For ``vectors`` ``(n, width)`` too many to compare all pairs. ``index`` is their index; by default, it is built.
    """
    check_limits(k, threshold if threshold is not None else -1.0)
    check_at_least(1, per_text=per_text)
    rows = numeric_rows(vectors, "vectors")
    index = build_index(rows) if index is None else index
    parts = _parts(np.arange(len(rows)))
    found = [_pairs_of(index, rows, part, per_text, threshold=threshold)[0] for part in parts]
    return best_first(different_pairs(join_pairs(found)), k)


def pairs_above(vectors: Array, threshold: float, *, index: Index | None = None) -> Pairs:
    """All pairs with at least this cosine that an index of ``vectors`` ``(n, width)`` finds.

    A row whose last neighbor still reaches the threshold is searched again for four times as many, up to 1,024.
    """
    check_limits(None, threshold)
    rows = numeric_rows(vectors, "vectors")
    index = build_index(rows) if index is None else index
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
    """Like ``duplicate_rows``, but with the neighbors that an index finds; may miss a few duplicates."""
    order = preference(len(vectors), keep, lengths)
    graph = graph_of([pairs_above(vectors, threshold, index=index)], len(vectors))
    return choose_duplicates(graph, order, vectors)


def _parts(rows: Ids) -> list[Ids]:
    return [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]


def _pairs_of(
    index: Index, vectors: Array, rows: Ids, k: int, *, threshold: float | None
) -> tuple[Pairs, NDArray[np.bool_]]:
    """Pairs of ``rows`` ``(m,)`` with their ``k`` nearest, and a mask of rows that may have more at the threshold."""
    hits = search_index(index, vectors[rows], k=k + 1, vectors=vectors)  # one more: the row itself
    is_cut = hits.scores[:, -1] >= -1.0 if threshold is None else hits.scores[:, -1] >= np.float32(threshold)
    return neighbor_pairs(hits, rows=rows, threshold=threshold), is_cut


MOST_EFFORT = 4096


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of the true ``k`` nearest neighbors found: by the index alone (``raw``), and after exact scoring.

    ``query_ms`` is the mean time of a single query, including exact scoring.
    """

    k: int
    n_queries: int
    raw: float
    rescored: float
    query_ms: float

    def describe(self) -> str:
        """Return the measurement as one line of text.

        >>> Recall(10, 100, 0.61, 0.987, 0.4).describe()
        'recall@10 0.987 (0.610 before exact scoring), measured on 100 queries; 0.4 ms per query'
        """
        return (
            f"recall@{self.k} {self.rescored:.3f} ({self.raw:.3f} before exact scoring), measured on "
            f"{self.n_queries:,} queries; {self.query_ms:.3g} ms per query"
        )


def measure_recall(
    index: Index, queries: ArrayLike, vectors: Array, *, k: int = 10, truth: Ids | None = None
) -> Recall:
    """Compare an index with exact search over ``vectors`` ``(n, width)``, from which it was built.

    Pass ``truth`` ``(queries, k)``, the ids of the exact search, to skip that search.
    """
    rows = check_queries(queries, index.width)
    if not len(rows) or not len(index):
        raise InputError("Recall needs at least one query and one vector.")
    if truth is None:
        truth = search(rows, vectors, k=k).ids
    raw = index.search(rows, min(k, len(index)))
    started = time.perf_counter()
    found = [search_index(index, query, k=k, vectors=vectors) for query in rows]
    took = time.perf_counter() - started
    rescored = share_found(join_hits(found).ids, truth)
    return Recall(k, len(rows), share_found(raw.ids, truth), rescored, 1000 * took / len(rows))


def share_found(found: Ids, truth: Ids) -> float:
    """The share of the ids in ``truth`` ``(n, k)`` that are in the same row of ``found`` ``(n, m)``.

    >>> share_found(np.array([[1, 2], [3, 4]]), np.array([[2, 1], [4, 9]]))
    0.75
    """
    both = [len(np.intersect1d(row, right)) for row, right in zip(found, truth, strict=True)]
    return sum(both) / max(truth.size, 1)


def tune_effort(
    index: Index, queries: ArrayLike, vectors: Array, *, k: int = 10, recall: float = 0.95, truth: Ids | None = None
) -> Recall:
    """Double the effort of an index until it reaches ``recall`` on ``queries``, and return the recall reached.

    Stops at an effort of 4,096 at the latest. The index keeps its new effort.
    """
    rows = check_queries(queries, index.width)
    if truth is None:
        truth = search(rows, vectors, k=k).ids
    measured = measure_recall(index, rows, vectors, k=k, truth=truth)
    while measured.rescored < recall and index.settings.effort < MOST_EFFORT:
        index.settings = replace(index.settings, effort=2 * index.settings.effort)
        measured = measure_recall(index, rows, vectors, k=k, truth=truth)
    return measured
