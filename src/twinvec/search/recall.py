"""How much of what exact search finds an index finds: measured on a sample, never assumed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.search.exact import search
from twinvec.search.hits import Hits
from twinvec.search.index import Index, check_queries, search_index
from twinvec.types import Array, Ids

__all__ = ["Recall", "measure_recall", "share_found", "tune_effort"]

MOST_EFFORT = 4096


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of the true ``k`` nearest that was found for ``n_queries``: by the index, and after exact scoring.

    ``query_ms`` is the time of one query, asked one at a time, with the exact scoring.
    """

    k: int
    n_queries: int
    raw: float
    rescored: float
    query_ms: float

    def words(self) -> str:
        """All of it in words.

        >>> Recall(10, 100, 0.61, 0.987, 0.4).words()
        'recall@10 0.987 (0.610 before exact scoring), measured on 100 queries; 0.4 ms a query'
        """
        return (
            f"recall@{self.k} {self.rescored:.3f} ({self.raw:.3f} before exact scoring), measured on "
            f"{self.n_queries:,} queries; {self.query_ms:.3g} ms a query"
        )


def measure_recall(
    index: Index, queries: ArrayLike, vectors: Array, *, k: int = 10, truth: Ids | None = None
) -> Recall:
    """Compare an index with exact search over ``vectors`` ``(n, width)``, from which it was built.

    ``truth`` ``(queries, k)`` saves the exact search where its ids are known.
    """
    asked = check_queries(queries, index.width)
    if not len(asked) or not len(index):
        raise InputError("Recall needs at least one query and one vector.")
    if truth is None:
        truth = search(asked, vectors, k=k).ids
    raw = index.search(asked, min(k, len(index)))
    started = time.perf_counter()
    found = [search_index(index, query, k=k, vectors=vectors) for query in asked]
    took = time.perf_counter() - started
    together = Hits(np.concatenate([hits.ids for hits in found]), np.concatenate([hits.scores for hits in found]))
    return Recall(
        k, len(asked), share_found(raw.ids, truth), share_found(together.ids, truth), 1000 * took / len(asked)
    )


def share_found(found: Ids, truth: Ids) -> float:
    """The mean share of each row of ``truth`` ``(n, k)`` that is in the same row of ``found`` ``(n, m)``.

    >>> share_found(np.array([[1, 2], [3, 4]]), np.array([[2, 1], [4, 9]]))
    0.75
    """
    both = [len(np.intersect1d(row, right)) for row, right in zip(found, truth, strict=True)]
    return sum(both) / max(truth.size, 1)


def tune_effort(
    index: Index, queries: ArrayLike, vectors: Array, *, k: int = 10, recall: float = 0.95, truth: Ids | None = None
) -> Recall:
    """Raise an index's effort until it reaches a recall on ``queries``; says what it reached.

    The effort doubles until it is enough, or until it helps no more. The index keeps it.
    """
    asked = check_queries(queries, index.width)
    if truth is None:
        truth = search(asked, vectors, k=k).ids
    measured = measure_recall(index, asked, vectors, k=k, truth=truth)
    while measured.rescored < recall and index.settings.effort < MOST_EFFORT:
        index.settings = replace(index.settings, effort=2 * index.settings.effort)
        measured = measure_recall(index, asked, vectors, k=k, truth=truth)
    return measured
