"""Agglomerative clustering down to a threshold: the two most similar clusters are joined, as long as they are similar.

By chains of nearest neighbours (Murtagh 1983), which need time and memory quadratic in the number of rows, so this is
for thousands; communities are for more. A cluster whose nearest is below the threshold is done: with these linkages a
join never brings two others nearer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import LINKAGES, Linkage
from twinvec.cluster.kmeans import check_not_empty
from twinvec.errors import InputError, check_name
from twinvec.search.measures import unit_rows_of
from twinvec.types import Ids, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["Agglomerative", "AgglomerativeSettings"]

MOST_ROWS = 20_000  # 1.6 GB of scores


@dataclass(frozen=True, slots=True)
class AgglomerativeSettings:
    """Two clusters are joined while their similarity is at least ``threshold``.

    It is the mean cosine of their rows (``average``), or the lowest (``complete``).
    """

    threshold: float = 0.6
    linkage: Linkage = "average"

    def __post_init__(self) -> None:
        check_name("linkage", self.linkage, LINKAGES)
        if not np.isfinite(self.threshold):
            raise InputError(f"threshold must be a number, got {self.threshold}.")

    def describe(self) -> str:
        """What is done, in words."""
        return f"agglomerative, {self.linkage} linkage, joined down to a cosine of {self.threshold:g}"


class Agglomerative:
    """Clusters of rows that are similar to each other. After ``fit``:

    ``labels_`` ``(n,)``, the cluster of every row, larger clusters first; ``n_clusters_``.
    """

    def __init__(self, settings: AgglomerativeSettings | None = None) -> None:
        self.settings = settings or AgglomerativeSettings()

    def fit(self, vectors: ArrayLike) -> Agglomerative:
        """Find the clusters of ``vectors`` ``(n, width)``."""
        rows = numeric_rows(vectors, "vectors")
        check_not_empty(rows)
        if len(rows) > MOST_ROWS:
            raise InputError(
                f"Agglomerative clustering holds the scores of all pairs, which are too many for {len(rows):,} vectors "
                f"(at most {MOST_ROWS:,}).",
                hint="Use communities or k-means, or cluster a part.",
            )
        units = unit_rows_of(rows)
        scores = np.asarray(units @ units.T)
        joined = join_similar(scores, self.settings.threshold, JOINS[self.settings.linkage])
        self.labels_ = by_size(joined)
        self.n_clusters_ = int(self.labels_.max()) + 1
        return self


def join_similar(scores: Vectors, threshold: float, linkage: Join) -> Ids:
    """For each row the lowest row of its cluster, ``(n,)``. ``scores`` ``(n, n)`` is used up.

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
            there = chain[-2]  # of equal ones the one we come from, or the chain might never end
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
    """Nothing will be joined to this row: no other need look at it."""
    is_open[row] = False
    scores[:, row] = -np.inf


def _join(scores: Vectors, first: int, second: int, sizes: Ids, linkage: Join) -> None:
    """Let ``first`` stand for both."""
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
    """Labels from 0 for equal marks ``(n,)``, largest cluster first, those of equal size in the order of their rows.

    >>> by_size(np.array([7, 3, 3, 9])).tolist()
    [1, 0, 0, 2]
    """
    _, firsts, inverse, counts = np.unique(marks, return_index=True, return_inverse=True, return_counts=True)
    return np.argsort(np.lexsort((firsts, -counts)))[inverse.reshape(-1)]
