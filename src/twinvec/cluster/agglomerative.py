"""Agglomerative clustering: merge the two most similar clusters until no similarity reaches the threshold.

Uses nearest-neighbor chains (Murtagh 1983), which take quadratic time and memory: use it for thousands of rows, and
communities for more. A cluster whose nearest neighbor is below the threshold is final: with these linkages, merging
never brings two other clusters closer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import LINKAGES, Linkage
from twinvec.cluster.kmeans import nonempty_rows
from twinvec.errors import InputError, check_name
from twinvec.search.measures import unit_rows_of
from twinvec.search.pairs import check_limits
from twinvec.types import Ids, Vectors

__all__ = ["Agglomerative", "AgglomerativeSettings"]

MOST_ROWS = 20_000  # 1.6 GB of scores


@dataclass(frozen=True, slots=True)
class AgglomerativeSettings:
    """Two clusters merge while their similarity is at least ``threshold``.

    The similarity is the mean cosine of their rows (``average``) or the lowest one (``complete``).
    """

    threshold: float = 0.6
    linkage: Linkage = "average"

    def __post_init__(self) -> None:
        check_name("linkage", self.linkage, LINKAGES)
        check_limits(None, self.threshold)

    def describe(self) -> str:
        """Return the algorithm and its settings as one line of text."""
        return f"agglomerative, {self.linkage} linkage, merged down to a cosine of {self.threshold:g}"


class Agglomerative:
    """Clusters of similar rows. After ``fit``: ``labels_`` ``(n,)``, largest cluster first; ``n_clusters_``."""

    def __init__(self, settings: AgglomerativeSettings | None = None) -> None:
        self.settings = settings or AgglomerativeSettings()

    def fit(self, vectors: ArrayLike) -> Agglomerative:
        """Find the clusters of ``vectors`` ``(n, width)``."""
        rows = nonempty_rows(vectors)
        if len(rows) > MOST_ROWS:
            raise InputError(
                f"Agglomerative clustering keeps the scores of all pairs in memory: {len(rows):,} vectors are too many "
                f"(at most {MOST_ROWS:,}).",
                hint="Use communities or k-means, or cluster a sample.",
            )
        units = unit_rows_of(rows)
        scores = np.asarray(units @ units.T)
        self.labels_ = by_size(join_similar(scores, self.settings.threshold, JOINS[self.settings.linkage]))
        self.n_clusters_ = int(self.labels_.max()) + 1
        return self


def join_similar(scores: Vectors, threshold: float, linkage: Join) -> Ids:
    """The lowest row of each row's cluster, ``(n,)``. Overwrites ``scores`` ``(n, n)``.

    >>> scores = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.4], [0.9, 0.4, 1.0]], dtype=np.float32)
    >>> join_similar(scores, 0.5, JOINS["average"]).tolist()
    [0, 1, 0]
    """
    n = len(scores)
    np.fill_diagonal(scores, -np.inf)
    sizes, owner = np.ones(n, dtype=np.int64), np.arange(n)
    waiting, chain = list(range(n - 1, -1, -1)), list[int]()
    is_open = np.ones(n, dtype=bool)
    while waiting or chain:
        if not chain:
            row = waiting.pop()
            if not is_open[row]:
                continue
            chain.append(row)
        here = chain[-1]
        there = int(scores[here].argmax())
        if len(chain) > 1 and scores[here, chain[-2]] >= scores[here, there]:
            there = chain[-2]  # break ties toward the previous row, or the chain might never end
        if not scores[here, there] >= threshold:
            _close(scores, is_open, here)
            chain.pop()
        elif len(chain) > 1 and there == chain[-2]:
            del chain[-2:]
            first, second = min(here, there), max(here, there)
            _join(scores, first, second, sizes, linkage)
            owner[owner == second] = first
            is_open[second] = False
            waiting.append(first)
        else:
            chain.append(there)
    return owner


def _close(scores: Vectors, is_open: NDArray[np.bool_], row: int) -> None:
    """Exclude a final cluster from further merges."""
    is_open[row] = False
    scores[:, row] = -np.inf


def _join(scores: Vectors, first: int, second: int, sizes: Ids, linkage: Join) -> None:
    """Merge ``second`` into ``first``."""
    together = linkage(scores[first], scores[second], int(sizes[first]), int(sizes[second]))
    together[[first, second]] = -np.inf
    scores[first] = together
    scores[:, first] = together
    scores[:, second] = -np.inf
    sizes[first] += sizes[second]


Join = Callable[[Vectors, Vectors, int, int], Vectors]

JOINS: dict[Linkage, Join] = {
    "average": lambda one, other, n_one, n_other: np.asarray((n_one * one + n_other * other) / (n_one + n_other)),
    "complete": lambda one, other, n_one, n_other: np.minimum(one, other),
}


def by_size(marks: Ids) -> Ids:
    """Labels from 0 for groups of equal ``marks`` ``(n,)``: largest group first, ties in row order.

    >>> by_size(np.array([7, 3, 3, 9])).tolist()
    [1, 0, 0, 2]
    """
    _, firsts, inverse, counts = np.unique(marks, return_index=True, return_inverse=True, return_counts=True)
    return np.argsort(np.lexsort((firsts, -counts)))[inverse.reshape(-1)]
