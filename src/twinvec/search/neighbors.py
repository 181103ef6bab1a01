"""The nearest other rows of every row, and the pairs they make."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.search.exact import search
from twinvec.search.hits import Hits
from twinvec.search.pairs import Pairs, best_first
from twinvec.search.rows import checked_rows
from twinvec.types import Ids

__all__ = ["different_pairs", "neighbor_pairs", "neighbors", "without_self"]


def neighbors(vectors: ArrayLike, k: int = 10) -> Hits:
    """The ``k`` other rows nearest to each row by cosine: ``(n, width)`` gives hits ``(n, min(k, n - 1))``.

    >>> neighbors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], k=1).ids.tolist()
    [[2], [2], [0]]
    """
    rows = checked_rows(vectors, "vectors")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    return without_self(search(rows, rows, k=k + 1)) if len(rows) else Hits(*search(rows, rows, k=k))


def without_self(hits: Hits) -> Hits:
    """Hits ``(n, k + 1)`` of rows among themselves, without each row's own id: ``(n, k)``.

    A row that is not among its own hits, because as many equal ones come before it, loses its last hit.
    """
    is_self = hits.ids == np.arange(len(hits.ids))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    shape = len(hits.ids), hits.ids.shape[1] - 1
    return Hits(hits.ids[~is_self].reshape(shape), hits.scores[~is_self].reshape(shape))


def neighbor_pairs(hits: Hits, *, rows: Ids | None = None, threshold: float | None = None) -> Pairs:
    """The pairs that hits ``(n, k)`` make with the rows they were found for, each once, best first.

    ``rows`` ``(n,)`` says which these are; by default all, from 0. Ids of -1 are no hits.

    >>> neighbor_pairs(neighbors([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], k=1)).right.tolist()
    [2, 2]
    """
    n, k = hits.ids.shape
    ends, ids, scores = np.repeat(np.arange(n) if rows is None else rows, k), hits.ids.ravel(), hits.scores.ravel()
    good = (ids >= 0) & (ids != ends)
    if threshold is not None:
        good &= scores >= np.float32(threshold)
    pairs = Pairs(np.minimum(ends, ids), np.maximum(ends, ids), scores)
    return best_first(different_pairs(pairs.take(good)))


def different_pairs(pairs: Pairs) -> Pairs:
    """Each pair once, with the first score it comes with.

    >>> pairs = Pairs(np.array([0, 1, 0]), np.array([2, 2, 2]), np.array([0.5, 0.4, 0.5], np.float32))
    >>> different_pairs(pairs).left.tolist()
    [0, 1]
    """
    n = int(pairs.right.max(initial=0)) + 1
    return pairs.take(np.unique(pairs.left * n + pairs.right, return_index=True)[1])
