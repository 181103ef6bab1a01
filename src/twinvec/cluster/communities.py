"""Communities: groups of rows that are all near one center row, found on the neighbor graph.

Same definition as ``community_detection`` of sentence-transformers: a row is a possible center if at least
``min_size`` rows, itself included, reach the threshold. The largest group comes first and takes its neighbors; a later
one gets the remaining rows, if they are enough and its center is still free. Memory grows with the number of edges
(8 bytes per direction), not with the square of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.cluster.kmeans import nonempty_rows
from twinvec.errors import check_at_least
from twinvec.search.approximate import pairs_above
from twinvec.search.index import Index
from twinvec.search.neighbors import Graph, graph_of
from twinvec.search.pairs import all_pairs_above, check_limits, exact_cosines
from twinvec.types import Array, Ids

__all__ = ["Communities", "CommunitySettings"]

NO_CLUSTER = -1


@dataclass(frozen=True, slots=True)
class CommunitySettings:
    """A community has at least ``min_size`` rows, each with a cosine of at least ``threshold`` to its center."""

    threshold: float = 0.75
    min_size: int = 10

    def __post_init__(self) -> None:
        check_at_least(1, min_size=self.min_size)
        check_limits(None, self.threshold)

    def describe(self) -> str:
        """Return the algorithm and its settings as one line of text."""
        return f"communities of at least {self.min_size}, with a cosine of {self.threshold:g} or more to their center"


class Communities:
    """Groups around center rows. After ``fit``, with larger communities first:

    ``labels_`` ``(n,)``, -1 for rows without a community; ``communities_``, the rows of each: its center, then the
    others, nearest first; ``center_rows_`` ``(n_clusters_,)``.
    """

    def __init__(self, settings: CommunitySettings | None = None) -> None:
        self.settings = settings or CommunitySettings()

    def fit(self, vectors: ArrayLike, *, index: Index | None = None) -> Communities:
        """Find the communities of ``vectors`` ``(n, width)``; an ``index`` of them replaces exact neighbor search."""
        rows = nonempty_rows(vectors)
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
    """The rows of each community, its center first. Larger communities come first; ties by their number of neighbors.

    >>> from twinvec.search.pairs import Pairs
    >>> star = graph_of([Pairs(np.array([0, 0, 0]), np.array([1, 2, 3]), np.ones(3, np.float32))], 5)
    >>> [members.tolist() for members in find_communities(star, 2)]
    [[0, 1, 2, 3]]
    """
    sizes = graph.counts + 1  # including the row itself
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
    """The members ``(m,)`` of a community: its center, which comes first, then the others by similarity to it."""
    scores = exact_cosines(rows, np.repeat(members[0], len(members) - 1), members[1:])
    return np.concatenate([members[:1], members[1:][np.argsort(-scores, kind="stable")]])
