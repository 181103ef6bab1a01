"""How blocks of rows are scored, how far such a score may be off, and how single pairs are scored without rounding.

Products of blocks are float32, and where a pair stands in its block decides how they are rounded. So a search keeps
whatever may be among the best within that rounding, and settles what is left in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import UnknownNameError
from twinvec.search.rows import UNIT, unit_block
from twinvec.types import Array, Vectors
from twinvec.vectors import SIMILARITIES

__all__ = ["MEASURES", "Measure", "find_measure", "product_rounding"]

HALF_ULP = 2.0**-24

Lengths = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A similarity in its three forms.

    ``prepare`` readies rows ``(n, width)`` with their lengths ``(n,)`` once; ``score`` compares two blocks of ready
    rows into ``out``, ``(n, m)``; ``rounding`` bounds the error of these scores for queries of some lengths ``(n,)``,
    vectors up to a length, and a width; ``exact`` scores row ``i`` with row ``i`` in float64.
    """

    prepare: Callable[[Vectors, Lengths], Vectors]
    score: Callable[[Vectors, Vectors, Vectors], Vectors]
    rounding: Callable[[Lengths, float, int], Lengths]
    exact: Callable[[Array, Array], Array]


def find_measure(name: str) -> Measure:
    """The measure of that name, or an error that lists the known ones."""
    if name not in MEASURES:
        raise UnknownNameError("similarity", name, MEASURES)
    return MEASURES[name]


def product_rounding(width: int) -> float:
    """The most by which a float32 product of rows of length 1 can be off, in whatever order it is summed up.

    Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1: ``width`` half units in the last place; and
    room for rows that are only nearly of length 1.
    """
    return width * HALF_ULP + 3 * UNIT


def _product(left: Vectors, right: Vectors, out: Vectors) -> Vectors:
    return np.matmul(left, right.T, out=out)


def _other(name: str) -> Callable[[Vectors, Vectors, Vectors], Vectors]:
    def score(left: Vectors, right: Vectors, out: Vectors) -> Vectors:
        out[...] = SIMILARITIES[name](left, right)
        return out

    return score


def _as_is(rows: Vectors, lengths: Lengths) -> Vectors:
    return rows


def _dot(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", left, right))


def _cosine(left: Array, right: Array) -> Array:
    lengths = np.sqrt(_dot(left, left) * _dot(right, right))
    return np.asarray(_dot(left, right) / np.where(lengths == 0, 1, lengths))


MEASURES: dict[str, Measure] = {
    "cosine": Measure(
        unit_block,
        _product,
        lambda lengths, longest, width: np.full(len(lengths), product_rounding(width)),
        _cosine,
    ),
    "dot": Measure(
        _as_is,
        _product,
        lambda lengths, longest, width: lengths * longest * product_rounding(width),
        _dot,
    ),
    "euclidean": Measure(
        _as_is,
        _other("euclidean"),
        # the float64 squares cancel for near rows; and the distance is rounded to float32
        lambda lengths, longest, width: (lengths + longest) * (np.sqrt(width * 2.0**-52) + 2 * HALF_ULP),
        lambda left, right: -np.linalg.norm(left - right, axis=1),
    ),
    "manhattan": Measure(
        _as_is,
        _other("manhattan"),
        # numpy sums up in eight strands of at most 16 numbers, then in pairs
        lambda lengths, longest, width: (lengths + longest) * np.sqrt(width) * (24 + np.log2(width + 1)) * HALF_ULP,
        lambda left, right: -np.abs(left - right).sum(axis=1),
    ),
}
