"""Linear and rank correlation of two lists of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError

__all__ = ["pearson", "ranks", "spearman"]


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Rank of every value, from 1; equal values share the mean of their ranks. ``(n,)`` to ``(n,)``.

    >>> ranks([10, 30, 20, 30]).tolist()
    [1.0, 3.5, 2.0, 3.5]
    """
    array = np.asarray(values)
    if (array != array).any():  # numpy would rank all NaN as one highest value
        raise InputError(f"{int((array != array).sum())} of {array.size} values are NaN, which has no rank.")
    _, place, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def pearson(left: ArrayLike, right: ArrayLike) -> float:
    """Linear correlation of two lists of numbers, both ``(n,)``.

    >>> round(pearson([1, 2, 3], [2, 4, 7]), 4)
    0.9934
    """
    a, b = _checked(left, right)
    a, b = _centered(a), _centered(b)
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))


def spearman(left: ArrayLike, right: ArrayLike) -> float:
    """Rank correlation of two lists of numbers, both ``(n,)``: Pearson's of their ranks, means for ties.

    >>> spearman([1, 2, 3], [1, 4, 9])
    1.0
    """
    a, b = _checked(left, right)
    return pearson(ranks(a), ranks(b))


def _checked(left: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InputError(f"A correlation needs two equally long lists of at least 2, got shapes {a.shape}, {b.shape}.")
    for name, values in (("first", a), ("second", b)):
        if not np.isfinite(values).all():
            raise InputError(f"A correlation needs finite numbers; the {name} list has others.")
        if values.min() == values.max():
            raise InputError(f"The correlation is undefined: all {len(values)} values of the {name} list are equal.")
    return a, b


def _centered(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values less their mean, in units of the largest, so that no square over- or underflows."""
    values = values / np.abs(values).max()
    values = values - values.mean()
    return np.asarray(values / np.abs(values).max(), dtype=np.float64)
