"""The best columns of a matrix of scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.types import Vectors

__all__ = ["Hits", "top_k"]


class Hits(NamedTuple):
    """Row ``i`` answers query ``i``, best first. Both are ``(queries, k)``."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]


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
