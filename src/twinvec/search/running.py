"""The best scores so far: of a new block, only what can still get among them is looked at.

Every query has a bar, a score that at least ``k`` others reach. What reaches it is set aside, and sorted only when as
much has gathered as is kept; then the bar rises. So there are few sorts, and the time is that of the products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.search.hits import Hits
from twinvec.search.order import by_query
from twinvec.types import Ids, Vectors

__all__ = ["Candidates", "RunningHits", "first_bars", "first_hits", "ranks"]

SPARE = 64  # scores beyond the best k that a query keeps because rounding may hide that they belong to these
GROUPS = 4  # groups of columns for each of the k, of which the best tell a first bar


class Candidates(NamedTuple):
    """Scores of some queries with some vectors, by query; all are ``(n,)``."""

    queries: Ids
    ids: Ids
    scores: NDArray[np.float32]

    def take(self, places: Ids | NDArray[np.bool_]) -> Candidates:
        """Some of the candidates."""
        return Candidates(self.queries[places], self.ids[places], self.scores[places])


class RunningHits:
    """The best ``k`` for each of ``n_queries``, and what rounding cannot tell from the last of them."""

    def __init__(self, n_queries: int, k: int) -> None:
        self.k = k
        self.bars = np.full(n_queries, -np.inf, dtype=np.float32)
        self._is_full = np.zeros(n_queries, dtype=bool)  # has more than it can keep next to the bar
        self._found: list[Candidates] = []
        self._n_left = 0  # candidates to gather until the next sort

    def add(self, scores: Vectors, start: int, slack: NDArray[np.float32]) -> None:
        """Take what is good enough of the scores ``(queries, m)`` of the vectors from ``start`` on.

        ``slack`` ``(queries,)`` is how far apart two scores may be by rounding alone.
        """
        if not self._found and scores.shape[1] >= self.k:
            self.bars, self._n_left = first_bars(scores, self.k), 2 * self.k * len(scores)
        entry = np.where(self._is_full, np.nextafter(self.bars, np.float32(np.inf)), self.bars - slack)
        places = np.flatnonzero(scores >= entry[:, None])
        queries, columns = np.divmod(places, scores.shape[1])
        self._found.append(Candidates(queries, columns + start, scores.ravel()[places]))
        self._n_left -= len(queries)
        if self._n_left < 0:
            self.sort(slack)

    def sort(self, slack: NDArray[np.float32]) -> Candidates:
        """All that is kept: by query, best first, equal scores by id."""
        queries, ids, scores = zip(*self._found, strict=True)
        found = Candidates(np.concatenate(queries), np.concatenate(ids), np.concatenate(scores))
        found = found.take(by_query(found.queries, found.scores))  # stable, and the blocks came with rising ids
        n_each = np.bincount(found.queries, minlength=len(self.bars))
        if n_each.min(initial=self.k) >= self.k:
            self.bars = found.scores[np.cumsum(n_each) - n_each + self.k - 1]
        found = found.take(found.scores >= (self.bars - slack)[found.queries])
        n_each = np.bincount(found.queries, minlength=len(self.bars))
        self._is_full |= n_each > self.k + SPARE
        found = found.take(ranks(n_each) < self.k + SPARE)
        self._found, self._n_left = [found], self.k * len(self.bars)
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


def first_bars(scores: Vectors, k: int) -> NDArray[np.float32]:
    """A score of each row, ``(n, m)`` to ``(n,)``, that at least ``k`` of the row reach; ``m`` is at least ``k``.

    The columns are dealt out to groups. The best of ``k`` groups are ``k`` different scores, and the worst of these
    is the bar; a little too low, but far quicker than a sort of the row.

    >>> first_bars(np.array([[0.1, 0.9, 0.5, 0.7]], dtype=np.float32), k=1).tolist()
    [0.8999999761581421]
    """
    n_groups = min(scores.shape[1], GROUPS * k)
    size = scores.shape[1] // n_groups
    best = scores[:, : size * n_groups].reshape(len(scores), size, n_groups).max(axis=1)
    return np.partition(best, n_groups - k, axis=1)[:, n_groups - k]
