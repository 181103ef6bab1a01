"""Communities: groups of rows that are all near one row, found on the graph of neighbours.

The definition is that of sentence-transformers' ``community_detection``: every row with at least ``min_size`` rows
(itself among them) at the threshold is a possible centre; the largest comes first and takes its neighbours; a later
one gets what is left, if that is enough and its centre was not taken. Memory grows with the number of edges, 8 bytes
each way, and never with the square of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.cluster.kmeans import check_not_empty
from twinvec.errors import InputError, check_at_least
from twinvec.search.approximate import pairs_above
from twinvec.search.index import Index
from twinvec.search.neighbors import Graph, graph_of
from twinvec.search.pairs import all_pairs_above, exact_cosines
from twinvec.types import Array, Ids
from twinvec.vectors import numeric_rows

__all__ = ["Communities", "CommunitySettings"]

NO_CLUSTER = -1


@dataclass(frozen=True, slots=True)
class CommunitySettings:
    """A community has at least ``min_size`` rows, each with a cosine of at least ``threshold`` to its centre."""

    threshold: float = 0.75
    min_size: int = 10

    def __post_init__(self) -> None:
        check_at_least(1, min_size=self.min_size)
        if not np.isfinite(self.threshold):
            raise InputError(f"threshold must be a number, got {self.threshold}.")

    def describe(self) -> str:
        """What is done, in words."""
        return f"communities of at least {self.min_size}, with a cosine of {self.threshold:g} or more to their center"


class Communities:
    """Groups around central rows; rows that belong to none are -1. After ``fit``:

    ``labels_`` ``(n,)``; ``communities_``, the rows of each, its centre first, then from the nearest to it;
    ``center_rows_`` ``(n_clusters_,)``. Larger communities come first.
    """

    def __init__(self, settings: CommunitySettings | None = None) -> None:
        self.settings = settings or CommunitySettings()

    def fit(self, vectors: ArrayLike, *, index: Index | None = None) -> Communities:
        """Find the communities of ``vectors`` ``(n, width)``; with an index of them, by the neighbours it finds."""
        rows = numeric_rows(vectors, "vectors")
        check_not_empty(rows)
        threshold = self.settings.threshold
        pairs = all_pairs_above(rows, threshold) if index is None else [pairs_above(rows, threshold, index=index)]
        found = find_communities(graph_of(pairs, len(rows)), self.settings.min_size)
        self.communities_ = [nearest_first(rows, members) for members in found]
        self.labels_ = np.full(len(rows), NO_CLUSTER, dtype=np.int64)
        for label, members in enumerate(self.communities_):
            self.labels_[members] = label
        self.center_rows_ = np.array([members[0] for members in self.communities_], dtype=np.int64)
        self.n_clusters_ = len(self.communities_)
        return self


def find_communities(graph: Graph, min_size: int) -> list[Ids]:
    """The rows of each community, its centre first; larger ones first, equal ones by the size they could have had.

    >>> from twinvec.search.pairs import Pairs
    >>> star = graph_of([Pairs(np.array([0, 0, 0]), np.array([1, 2, 3]), np.ones(3, np.float32))], 5)
    >>> [members.tolist() for members in find_communities(star, 2)]
    [[0, 1, 2, 3]]
    """
    sizes = graph.counts + 1  # with the row itself
    possible = np.flatnonzero(sizes >= min_size)
    is_taken = np.zeros(len(sizes), dtype=bool)
    found = []
    for center in possible[np.argsort(-sizes[possible], kind="stable")].tolist():
        if is_taken[center]:
            continue
        near = graph.of(center)
        free = near[~is_taken[near]]
        if len(free) + 1 >= min_size:
            is_taken[free] = is_taken[center] = True
            found.append(np.concatenate([[center], free]).astype(np.int64))
    return sorted(found, key=len, reverse=True)


def nearest_first(rows: Array, members: Ids) -> NDArray[np.int64]:
    """The members of a community, ``(m,)``, the centre, which comes first, followed by the nearest to it."""
    scores = exact_cosines(rows, np.repeat(members[0], len(members) - 1), members[1:])
    return np.concatenate([members[:1], members[1:][np.argsort(-scores, kind="stable")]])
