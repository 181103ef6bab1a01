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
from twinvec.search.measures import Measure, blocks_of, check_widths, find_measure, lengths_of
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
    """Row ``i`` answers query ``i``, best first. Both are ``(queries, k)``."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    def take(self, columns: Ids) -> Hits:
        """Some hits of each query, by their columns ``(queries, m)``."""
        return Hits(np.take_along_axis(self.ids, columns, axis=1), np.take_along_axis(self.scores, columns, axis=1))


def no_hits(n_queries: int) -> Hits:
    """Hits ``(queries, 0)``."""
    return Hits(np.empty((n_queries, 0), dtype=np.int64), np.empty((n_queries, 0), dtype=np.float32))


def join_hits(parts: Sequence[Hits]) -> Hits:
    """The hits of all queries, one part after the other."""
    return Hits(np.concatenate([part.ids for part in parts]), np.concatenate([part.scores for part in parts]))


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


def falling(scores: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Whole numbers below 2 ** 32 that fall as the scores rise; ``(n,)`` to ``(n,)``.

    >>> falling(np.array([-1.0, -0.0, 0.0, 2.0], dtype=np.float32)).argsort(kind="stable").tolist()
    [3, 1, 2, 0]
    """
    bits = (scores + np.float32(0)).view(np.int32)  # adding 0 makes -0.0 the same as 0.0
    # the bits of positive numbers rise with them, those of negative numbers, which are higher, fall
    turned = bits ^ (~(bits >> 31) & np.int32(0x7FFFFFFF))
    return np.asarray(turned.view(np.uint32), dtype=np.uint64)


def by_query(queries: Ids, scores: NDArray[np.float32]) -> Ids:
    """The order by query, then from the best score down; stable. Both are ``(n,)``, and queries below 2 ** 32.

    >>> by_query(np.array([1, 0, 1]), np.array([0.2, -0.5, 0.3], dtype=np.float32)).tolist()
    [1, 2, 0]
    """
    return np.argsort((queries.astype(np.uint64) << np.uint64(32)) + falling(scores), kind="stable")


def best_order(scores: NDArray[np.float32]) -> Ids:
    """Indices of the scores from the best down, equal ones in their order; ``(n,)`` to ``(n,)``.

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

FEWEST = 64  # rows; fewer are not worth a thread


class Workers:
    """One thread for each core, within a ``with`` block."""

    def __init__(self) -> None:
        self._n_threads = usable_cores()
        self._pool = ThreadPoolExecutor(self._n_threads)  # starts its threads only when there is work

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()

    def split(self, n: int) -> list[slice]:
        """Slices of ``n`` rows, one for each thread; one in all if there are few."""
        return equal_parts(n, min(self._n_threads, n // FEWEST))

    def map(self, work: Callable[..., Result], *items: Iterable[Any]) -> list[Result]:
        """The results of some work, done at once, in order."""
        calls = list(zip(*items, strict=True))
        if len(calls) == 1:
            return [work(*calls[0])]
        return list(self._pool.map(lambda call: work(*call), calls))


def equal_parts(n: int, n_parts: int) -> list[slice]:
    """Slices of about equal length that cover ``n`` rows; one at least, and none empty unless there are no rows.

    >>> equal_parts(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    n_parts = max(1, min(n_parts, n))
    ends = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


SPARE = 64  # scores beyond the best k that a query keeps because rounding may hide that they belong to these
GROUPS = 4  # groups of columns for each of the k, of which the best give a first threshold


class Candidates(NamedTuple):
    """Scores of some queries with some vectors, by query; all are ``(n,)``."""

    queries: Ids
    ids: Ids
    scores: NDArray[np.float32]

    def take(self, indices: Ids | NDArray[np.bool_]) -> Candidates:
        """Some of the candidates."""
        return Candidates(self.queries[indices], self.ids[indices], self.scores[indices])


class RunningHits:
    """The best ``k`` for each of ``n_queries``, and what rounding cannot tell from the last of them."""

    def __init__(self, n_queries: int, k: int) -> None:
        self.k = k
        self.thresholds = np.full(n_queries, -np.inf, dtype=np.float32)
        self._is_full = np.zeros(n_queries, dtype=bool)  # has more than it can keep next to the threshold
        self._found: list[Candidates] = []
        self._n_left = 0  # candidates to gather until the next sort

    def add(self, scores: Vectors, start: int, slack: NDArray[np.float32]) -> None:
        """Take what is good enough of the scores ``(queries, m)`` of the vectors from ``start`` on.

        ``slack`` ``(queries,)`` is how far apart two scores may be by rounding alone.
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
        """All that is kept: by query, best first, equal scores by id."""
        queries, ids, scores = zip(*self._found, strict=True)
        found = Candidates(np.concatenate(queries), np.concatenate(ids), np.concatenate(scores))
        found = found.take(by_query(found.queries, found.scores))  # stable, and the blocks came with rising ids
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
        """The best ``k`` of every query, which there must be."""
        return first_hits(self.sort(slack), self.k)


def first_hits(found: Candidates, k: int) -> Hits:
    """The first ``k`` candidates of every query, each of which has that many."""
    is_first = ranks(np.bincount(found.queries)) < k
    return Hits(found.ids[is_first].reshape(-1, k), found.scores[is_first].reshape(-1, k))


def ranks(counts: Ids) -> Ids:
    """0, 1, 2, ... for each of some groups of these sizes ``(groups,)``.

    >>> ranks(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def first_thresholds(scores: Vectors, k: int) -> NDArray[np.float32]:
    """A score of each row, ``(n, m)`` to ``(n,)``, that at least ``k`` of the row reach; ``m`` is at least ``k``.

    The columns are dealt out to groups. The best of ``k`` groups are ``k`` different scores, and the worst of these
    is the threshold; a little too low, but far quicker than a sort of the row.

    >>> first_thresholds(np.array([[0.1, 0.9, 0.5, 0.7]], dtype=np.float32), k=1).tolist()
    [0.8999999761581421]
    """
    n_groups = min(scores.shape[1], GROUPS * k)
    size = scores.shape[1] // n_groups
    best = scores[:, : size * n_groups].reshape(len(scores), size, n_groups).max(axis=1)
    return np.partition(best, n_groups - k, axis=1)[:, n_groups - k]


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
    check_at_least(1, k=k)
    measure = find_measure(similarity)
    k = min(k, len(stored))
    starts = range(0, max(len(asked), 1), QUERY_ROWS)
    return join_hits([_search_part(asked[start : start + QUERY_ROWS], stored, k, measure=measure) for start in starts])


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

        return join_hits(workers.map(settle, running, parts))


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
