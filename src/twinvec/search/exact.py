"""Exact nearest neighbors: blocked matrix products with a running top-k."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.engine.batches import usable_cores
from twinvec.errors import check_at_least
from twinvec.search.measures import Measure, blocks_of, check_width, find_measure, lengths_of
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import numeric_rows

__all__ = [
    "Hits",
    "RunningHits",
    "Workers",
    "best_order",
    "first_thresholds",
    "join_hits",
    "no_hits",
    "search",
    "top_k",
]


class Hits(NamedTuple):
    """The ids and scores of the best rows; row ``i`` is for query ``i``, best first. Both are ``(queries, k)``."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    def take(self, columns: Ids) -> Hits:
        """The hits of each query at ``columns`` ``(queries, m)``."""
        return Hits(np.take_along_axis(self.ids, columns, axis=1), np.take_along_axis(self.scores, columns, axis=1))


def no_hits(n_queries: int, k: int = 0) -> Hits:
    """Empty hits, ``(n_queries, k)``; one of the two is 0."""
    return Hits(np.empty((n_queries, k), dtype=np.int64), np.empty((n_queries, k), dtype=np.float32))


def join_hits(parts: Sequence[Hits]) -> Hits:
    """Concatenate the hits of several batches of queries."""
    return Hits(np.concatenate([part.ids for part in parts]), np.concatenate([part.scores for part in parts]))


def top_k(scores: Vectors, k: int) -> Hits:
    """The ``k`` best columns of every row of ``(n, m)`` scores, best first, as hits ``(n, min(k, m))``.

    Ties are ordered by id, also at rank ``k``, where the lowest ids are kept.

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


def falling(scores: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Integers below 2 ** 32 that decrease as the scores increase; ``(n,)`` to ``(n,)``.

    >>> falling(np.array([-1.0, -0.0, 0.0, 2.0], dtype=np.float32)).argsort(kind="stable").tolist()
    [3, 1, 2, 0]
    """
    bits = (scores + np.float32(0)).view(np.int32)  # adding 0 turns -0.0 into 0.0
    # as integers, the bits of positive floats rise with their value and those of negative floats fall
    turned = bits ^ (~(bits >> 31) & np.int32(0x7FFFFFFF))
    return np.asarray(turned.view(np.uint32), dtype=np.uint64)


def by_query(queries: Ids, scores: NDArray[np.float32]) -> Ids:
    """The stable order by query, then by falling score. Both are ``(n,)``; queries are below 2 ** 32.

    >>> by_query(np.array([1, 0, 1]), np.array([0.2, -0.5, 0.3], dtype=np.float32)).tolist()
    [1, 2, 0]
    """
    return np.argsort((queries.astype(np.uint64) << np.uint64(32)) + falling(scores), kind="stable")


def best_order(scores: NDArray[np.float32]) -> Ids:
    """The stable order of scores from best to worst; ``(n,)`` to ``(n,)``.

    >>> best_order(np.array([0.1, 0.9, 0.1, 0.5], dtype=np.float32)).tolist()
    [1, 3, 0, 2]
    """
    keys = falling(scores)
    keys <<= np.uint64(32)
    keys += np.arange(len(keys), dtype=np.uint64)
    keys.sort()
    keys &= np.uint64(0xFFFFFFFF)
    return keys.view(np.int64)


Result = TypeVar("Result")

FEWEST = 64  # rows per thread; fewer are not worth one


class Workers:
    """A pool with one thread per core, for use in a ``with`` block."""

    def __init__(self) -> None:
        self._n_threads = usable_cores()
        self._pool = ThreadPoolExecutor(self._n_threads)  # starts threads only when there is work

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()

    def split(self, n: int) -> list[slice]:
        """Slices of ``n`` rows, one per thread; a single slice if there are few rows."""
        return equal_parts(n, min(self._n_threads, n // FEWEST))

    def map(self, work: Callable[..., Result], *items: Iterable[Any]) -> list[Result]:
        """Run ``work`` on all items in parallel, and return the results in order."""
        calls = list(zip(*items, strict=True))
        if len(calls) == 1:
            return [work(*calls[0])]
        return list(self._pool.map(lambda call: work(*call), calls))


def equal_parts(n: int, n_parts: int) -> list[slice]:
    """Slices of about equal length that cover ``n`` rows: at least one, and none empty unless ``n`` is 0.

    >>> equal_parts(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    n_parts = max(1, min(n_parts, n))
    ends = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


SPARE = 64  # scores beyond the best k that a query keeps, because rounding may have ranked them too low
GROUPS = 4  # groups of columns per hit; their best scores give a first threshold


class Candidates(NamedTuple):
    """Scores of query and vector pairs, ordered by query; all are ``(n,)``."""

    queries: Ids
    ids: Ids
    scores: NDArray[np.float32]

    def take(self, indices: Ids | NDArray[np.bool_]) -> Candidates:
        """The candidates at ``indices``."""
        return Candidates(self.queries[indices], self.ids[indices], self.scores[indices])


class RunningHits:
    """The best ``k`` for each of ``n_queries``, and those within rounding error of the last of them."""

    def __init__(self, n_queries: int, k: int) -> None:
        self.k = k
        self.thresholds = np.full(n_queries, -np.inf, dtype=np.float32)
        self._is_full = np.zeros(n_queries, dtype=bool)  # more near the threshold than it can keep
        self._found: list[Candidates] = []
        self._n_left = 0  # candidates to collect before the next sort

    def add(self, scores: Vectors, start: int, slack: NDArray[np.float32]) -> None:
        """Add the scores ``(queries, m)`` of the vectors from row ``start`` on; keep those that may be among the best.

        ``slack`` ``(queries,)`` is the largest difference of two scores that rounding alone can cause.
        """
        if not self._found and scores.shape[1] >= self.k:
            self.thresholds, self._n_left = first_thresholds(scores, self.k), 2 * self.k * len(scores)
        entry = np.where(self._is_full, np.nextafter(self.thresholds, np.float32(np.inf)), self.thresholds - slack)
        indices = np.flatnonzero(scores >= entry[:, None])
        queries, columns = np.divmod(indices, scores.shape[1])
        self._found.append(Candidates(queries, columns + start, scores.ravel()[indices]))
        self._n_left -= len(queries)
        if self._n_left < 0:
            self.sort(slack)

    def sort(self, slack: NDArray[np.float32]) -> Candidates:
        """Prune and return the candidates: by query, best first, ties by id."""
        queries, ids, scores = zip(*self._found, strict=True)
        found = Candidates(np.concatenate(queries), np.concatenate(ids), np.concatenate(scores))
        found = found.take(by_query(found.queries, found.scores))  # stable, and blocks arrive with rising ids
        n_each = np.bincount(found.queries, minlength=len(self.thresholds))
        if n_each.min(initial=self.k) >= self.k:
            self.thresholds = found.scores[np.cumsum(n_each) - n_each + self.k - 1]
        found = found.take(found.scores >= (self.thresholds - slack)[found.queries])
        n_each = np.bincount(found.queries, minlength=len(self.thresholds))
        self._is_full |= n_each > self.k + SPARE
        found = found.take(ranks(n_each) < self.k + SPARE)
        self._found, self._n_left = [found], self.k * len(self.thresholds)
        return found

    def best(self, slack: NDArray[np.float32]) -> Hits:
        """The best ``k`` of every query; at least ``k`` must have been added."""
        return first_hits(self.sort(slack), self.k)


def first_hits(found: Candidates, k: int) -> Hits:
    """The first ``k`` candidates of every query; each must have at least ``k``."""
    is_first = ranks(np.bincount(found.queries)) < k
    return Hits(found.ids[is_first].reshape(-1, k), found.scores[is_first].reshape(-1, k))


def ranks(counts: Ids) -> Ids:
    """0, 1, 2, ... within each group, for groups of sizes ``counts`` ``(groups,)``.

    >>> ranks(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def first_thresholds(scores: Vectors, k: int) -> NDArray[np.float32]:
    """For each row of ``(n, m)`` scores, a score that at least ``k`` of them reach, ``(n,)``; ``m`` is at least ``k``.

    Columns are split into groups; the threshold is the ``k``-th best of the groups' best scores. It may be slightly
    lower than the ``k``-th best score, but is much faster to find.

    >>> first_thresholds(np.array([[0.1, 0.9, 0.5, 0.7]], dtype=np.float32), k=1).tolist()
    [0.8999999761581421]
    """
    n_groups = min(scores.shape[1], GROUPS * k)
    size = scores.shape[1] // n_groups
    best = scores[:, : size * n_groups].reshape(len(scores), size, n_groups).max(axis=1)
    return np.partition(best, n_groups - k, axis=1)[:, n_groups - k]


QUERY_ROWS, VECTOR_ROWS = 2048, 4096  # a block of scores is 32 MB; smaller blocks slow BLAS down
SETTLED_VALUES = 1 << 21  # of vectors that are compared in float64 at a time: 16 MB


def search(queries: ArrayLike, vectors: ArrayLike, *, k: int = 10, similarity: str = "cosine") -> Hits:
    """The ``k`` rows of ``vectors`` nearest to each query, best first; ties by id.

    ``queries`` is ``(n, width)`` or one ``(width,)``, ``vectors`` is ``(m, width)``; the hits are
    ``(n, min(k, m))``. Distances are negated, so higher is nearer. The order is that of float64: scores too close for
    float32 are recomputed, for up to 64 candidates beyond the best ``k``.

    >>> search([1.0, 0.1], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], k=2).ids.tolist()
    [[1, 2]]
    """
    rows, stored = numeric_rows(np.atleast_2d(queries), "queries"), numeric_rows(vectors, "vectors")
    check_width(rows, stored.shape[1])
    check_at_least(1, k=k)
    measure = find_measure(similarity)
    k = min(k, len(stored))
    starts = range(0, max(len(rows), 1), QUERY_ROWS)
    return join_hits([_search_part(rows[start : start + QUERY_ROWS], stored, k, measure=measure) for start in starts])


def _search_part(queries: Array, vectors: Array, k: int, *, measure: Measure) -> Hits:
    """``search`` for one batch of queries."""
    rows = np.ascontiguousarray(queries, dtype=np.float32)
    lengths = lengths_of(rows, "queries")
    if not (len(rows) and k):
        return no_hits(len(rows), k)
    prepared = measure.prepare(rows, lengths)
    room = np.empty(len(prepared) * min(VECTOR_ROWS, len(vectors)), dtype=np.float32)
    longest, slack = 0.0, np.zeros(len(prepared), dtype=np.float32)
    with Workers() as workers:
        parts = workers.split(len(prepared))
        running = [RunningHits(len(prepared[part]), k) for part in parts]
        for block in blocks_of(vectors, VECTOR_ROWS):
            longest = max(longest, float(block.lengths.max()))
            slack = np.asarray(2 * measure.rounding(lengths, longest, prepared.shape[1]), dtype=np.float32)
            out = room[: len(prepared) * len(block.rows)].reshape(len(prepared), -1)
            scores = measure.score(prepared, measure.prepare(block.rows, block.lengths), out)
            starts = [block.start] * len(parts)
            workers.map(
                RunningHits.add, running, [scores[part] for part in parts], starts, [slack[part] for part in parts]
            )

        def settle(hits: RunningHits, part: slice) -> Hits:
            found = hits.sort(slack[part])
            return first_hits(_settled(found, queries[part], vectors, slack=slack[part], measure=measure), k)

        return join_hits(workers.map(settle, running, parts))


def _settled(
    found: Candidates, queries: Array, vectors: Array, *, slack: NDArray[np.float32], measure: Measure
) -> Candidates:
    """Candidates in exact order: those within ``slack`` of a neighbor are rescored in float64; ties go by id."""
    rows, ids, scores = found
    is_near = (rows[1:] == rows[:-1]) & (scores[:-1] - scores[1:] <= slack[rows[1:]])
    unsure = np.flatnonzero(np.append(is_near, False) | np.append(False, is_near))
    if not len(unsure):
        return found
    n_pairs = max(1, SETTLED_VALUES // max(1, vectors.shape[1]))
    for start in range(0, len(unsure), n_pairs):  # in parts: with a large k, nearly all are unsure
        part = unsure[start : start + n_pairs]
        pairs = queries[rows[part]].astype(np.float64), vectors[ids[part]].astype(np.float64)
        scores[part] = measure.exact(*pairs)
    # runs of unsure candidates keep their position, so sorting them alone is enough
    order = unsure[np.lexsort((ids[unsure], -scores[unsure], rows[unsure]))]
    ids[unsure], scores[unsure] = ids[order], scores[order]
    return found
