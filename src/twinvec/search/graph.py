"""Which rows are neighbours: a graph in two flat arrays, 8 bytes for each edge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.search.pairs import Pairs
from twinvec.types import Ids

__all__ = ["Graph", "graph_of"]


class Graph(NamedTuple):
    """The neighbours of row ``i`` are ``ids[starts[i] : starts[i + 1]]``, rising; every edge is there both ways.

    ``starts`` is ``(n + 1,)``, ``ids`` ``(2 * edges,)``.
    """

    starts: Ids
    ids: NDArray[np.int32]

    @property
    def counts(self) -> Ids:
        """How many neighbours each row has, ``(n,)``."""
        return np.diff(self.starts)

    def of(self, row: int) -> NDArray[np.int32]:
        """The neighbours of one row."""
        return self.ids[self.starts[row] : self.starts[row + 1]]


def graph_of(pairs: Iterable[Pairs], n: int) -> Graph:
    """The graph of ``n`` rows with an edge for each pair, given in as many lists as there are; no pair comes twice.

    >>> graph = graph_of([Pairs(np.array([0, 1]), np.array([2, 2]), np.ones(2, np.float32))], 3)
    >>> [graph.of(row).tolist() for row in range(3)]
    [[2], [2], [0, 1]]
    """
    # One end in the upper half of a number, one in the lower; sorting in place needs no memory beyond the edges.
    parts = [(_joined(part.left, part.right), _joined(part.right, part.left)) for part in pairs]
    edges = np.concatenate([np.empty(0, dtype=np.int64), *(part for both in parts for part in both)])
    del parts
    edges.sort()
    counts = np.bincount(edges >> 32, minlength=n)
    return Graph(np.concatenate([[0], np.cumsum(counts)]), edges.astype(np.int32))  # the cast keeps the lower half


def _joined(upper: Ids, lower: Ids) -> Ids:
    return (upper << 32) + lower
