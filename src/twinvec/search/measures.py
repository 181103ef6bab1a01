"""Check rows, read them in blocks, and score them; single pairs are scored in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError, check_name
from twinvec.types import Array, Vectors
from twinvec.vectors import ROWS_AT_ONCE, SIMILARITIES, check_finite

__all__ = [
    "MEASURES",
    "Measure",
    "blocks_of",
    "check_width",
    "find_measure",
    "lengths_of",
    "product_rounding",
    "unit_block",
    "unit_rows_of",
]

UNIT = 2.0**-21  # lengths this close to 1 count as 1; float32 unit vectors are within 2 ** -23
LEAST_SQUARE, MOST_SQUARE = 1e-30, 1e30  # beyond these, squared float32 lengths lose digits or overflow


class Block(NamedTuple):
    """Rows ``(n, width)`` from row ``start`` of all on, and their lengths ``(n,)``."""

    start: int
    rows: Vectors
    lengths: NDArray[np.float64]


def check_width(queries: Array, width: int) -> None:
    """Raise an error if the queries ``(n, width)`` do not have the width of the vectors."""
    if queries.shape[1] != width:
        raise InputError(
            f"The queries have width {queries.shape[1]}, but the vectors have width {width}.",
            hint="Use the same model for both.",
        )


def blocks_of(vectors: Array, n_rows: int, name: str = "vectors") -> Iterator[Block]:
    """The rows of ``vectors`` in blocks of ``n_rows``, checked and in float32."""
    for start in range(0, len(vectors), n_rows):
        rows = np.ascontiguousarray(vectors[start : start + n_rows], dtype=np.float32)
        yield Block(start, rows, lengths_of(rows, name, start=start))


def lengths_of(rows: Vectors, name: str, *, start: int = 0) -> NDArray[np.float64]:
    """The length of every row, ``(n, width)`` to ``(n,)``; raises an error for NaN or infinity.

    >>> lengths_of(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32), "vectors").tolist()
    [5.0, 0.0]
    """
    squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
    odd = np.flatnonzero(~((squares > LEAST_SQUARE) & (squares < MOST_SQUARE)))  # includes NaN
    if len(odd):
        check_finite(rows, name, start=start)
        wide = rows[odd].astype(np.float64)
        squares[odd] = np.einsum("ij,ij->i", wide, wide)
    return np.asarray(np.sqrt(squares))


def unit_rows_of(vectors: Array, name: str = "vectors") -> Vectors:
    """All rows ``(n, width)`` scaled to length 1, in float32; not copied if they already are.

    >>> unit_rows_of(np.array([[0, 2], [0, 0]])).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    lengths = np.concatenate([np.empty(0), *(block.lengths for block in blocks_of(vectors, ROWS_AT_ONCE, name))])
    if vectors.dtype == np.float32 and _are_units(lengths):
        return np.ascontiguousarray(vectors)
    rows = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        rows[part] = vectors[part] / np.where(lengths[part] == 0, 1, lengths[part])[:, None]
    return rows


def unit_block(rows: Vectors, lengths: NDArray[np.float64]) -> Vectors:
    """Rows ``(n, width)`` scaled to length 1, given their lengths ``(n,)``; not copied if they already are.

    >>> unit_block(np.array([[0.0, 2.0]], dtype=np.float32), np.array([2.0])).tolist()
    [[0.0, 1.0]]
    """
    if _are_units(lengths):
        return rows
    return np.asarray(rows / np.where(lengths == 0, 1, lengths)[:, None], dtype=np.float32)


def _are_units(lengths: NDArray[np.float64]) -> bool:
    return bool(np.all(np.abs(lengths - 1) <= UNIT))


HALF_ULP = 2.0**-24

Lengths = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A similarity: fast for blocks, exact for pairs.

    ``prepare`` prepares rows ``(n, width)``, given their lengths ``(n,)``; ``score`` compares two blocks of prepared
    rows into ``out``, ``(n, m)``; ``rounding`` bounds the error of these scores, given the lengths ``(n,)`` of the
    queries, the longest vector and the width; ``exact`` scores row ``i`` with row ``i`` in float64.
    """

    prepare: Callable[[Vectors, Lengths], Vectors]
    score: Callable[[Vectors, Vectors, Vectors], Vectors]
    rounding: Callable[[Lengths, float, int], Lengths]
    exact: Callable[[Array, Array], Array]


def find_measure(name: str) -> Measure:
    """Return the measure with this name; the error for an unknown name lists the known ones."""
    check_name("similarity", name, MEASURES)
    return MEASURES[name]


def product_rounding(width: int) -> float:
    """The largest error of a float32 product of rows of length 1, in any order of summation.

    Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1: ``width`` half units in the last place, plus
    a margin for rows whose length is only nearly 1.
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
        unit_block, _product, lambda lengths, longest, width: np.full(len(lengths), product_rounding(width)), _cosine
    ),
    "dot": Measure(_as_is, _product, lambda lengths, longest, width: lengths * longest * product_rounding(width), _dot),
    "euclidean": Measure(
        _as_is,
        _other("euclidean"),
        # float64 squares cancel for similar rows, and the distance is rounded to float32
        lambda lengths, longest, width: (lengths + longest) * (np.sqrt(width * 2.0**-52) + 2 * HALF_ULP),
        lambda left, right: -np.linalg.norm(left - right, axis=1),
    ),
    "manhattan": Measure(
        _as_is,
        _other("manhattan"),
        # numpy sums eight strands of at most 16 numbers, then pairwise
        lambda lengths, longest, width: (lengths + longest) * np.sqrt(width) * (24 + np.log2(width + 1)) * HALF_ULP,
        lambda left, right: -np.abs(left - right).sum(axis=1),
    ),
}
