"""Similarities of vectors, and vectors in fewer bits. Pure functions on arrays.

Scores are similarities: higher means nearer, so distances are negated here, at the border.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import OutputType
from twinvec.errors import InputError, check_name
from twinvec.types import Array, Vectors

__all__ = [
    "PAIRWISE",
    "ROWS_AT_ONCE",
    "SIMILARITIES",
    "check_finite",
    "check_output",
    "checked_rows",
    "checked_vectors",
    "number_row",
    "numeric_rows",
    "quantize_vectors",
    "similarity",
    "similarity_pairwise",
    "unit_rows",
]


logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 4096


def numeric_rows(vectors: ArrayLike, name: str) -> Array:
    """The vectors as an array of numbers ``(n, width)``, or an error that says what they are instead."""
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name} must be numbers of shape (n, width), got {array.dtype} of shape {array.shape}.",
            hint="Encode a list of texts to get them.",
        )
    return array


def checked_rows(vectors: ArrayLike, name: str) -> Array:
    """The vectors as an array ``(n, width)`` of finite numbers, or an error that says what is wrong."""
    array = numeric_rows(vectors, name)
    for start in range(0, len(array), ROWS_AT_ONCE):
        check_finite(array[start : start + ROWS_AT_ONCE], name, start=start)
    return array


def check_finite(rows: Array, name: str, *, start: int = 0) -> None:
    """Refuse rows ``(n, width)`` with NaN or infinity; ``start`` is the number of the first."""
    row = _first_not_finite(rows)
    if row is not None:
        raise InputError(f"Row {start + row} of {name} holds NaN or infinity.", hint="Remove it, or encode it again.")


def checked_vectors(found: ArrayLike, texts: Sequence[str], *, width: int | None, source: str) -> Vectors:
    """Vectors that ``source`` made of texts as float32 ``(len(texts), width)``, or an error that names it.

    >>> checked_vectors([[1, 2, 3]], ["a cat"], width=None, source="a server").dtype
    dtype('float32')
    """
    try:
        array = np.asarray(found)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source} returned what numpy cannot read: {error}.") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{source} returned {array.dtype} of shape {array.shape}, not a table of numbers.",
            hint="Return an array of shape (texts, width).",
        )
    if len(array) != len(texts):
        raise InputError(f"{source} returned {len(array)} vectors for {len(texts)} texts.", hint="Return one for each.")
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"{source} returned vectors of width {array.shape[1]}; those before have width {width}.",
            hint="All vectors of a model must be equally wide.",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # too large for float32 becomes infinite, and is refused below
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    row = _first_not_finite(vectors)
    if row is not None:
        raise InputError(
            f"{source} returned NaN or infinity, the first for the text {texts[row]!r:.80}.",
            hint="Check the model's weights.",
        )
    return vectors


def _first_not_finite(rows: Array) -> int | None:
    if rows.dtype.kind != "f" or np.isfinite(rows).all():
        return None
    return int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])


def number_row(value: object) -> Array | None:
    """A JSON list of numbers as float64, ``(n,)``; None for anything else, also for numbers written as texts.

    >>> number_row([1, 2.5]).tolist(), number_row(["1"]), number_row([True])
    ([1.0, 2.5], None, None)
    """
    if not isinstance(value, list) or not set(map(type, value)) <= {int, float}:
        return None
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:  # a whole number beyond float64
        return None


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale every row to length 1; a row of zeros stays zero. ``(..., width)`` to the same.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norms == 0, 1, norms), dtype=np.float32)


def cosine(left: Vectors, right: Vectors) -> Vectors:
    """Cosine of every row of ``left`` with every row of ``right``: ``(n, m)``."""
    return np.asarray(unit_rows(left) @ unit_rows(right).T)


def dot(left: Vectors, right: Vectors) -> Vectors:
    """Dot product of every row of ``left`` with every row of ``right``: ``(n, m)``."""
    return np.asarray(left @ right.T)


def euclidean(left: Vectors, right: Vectors) -> Vectors:
    """Negative Euclidean distance of all rows to all rows: ``(n, m)``."""
    # float64: the expansion of |a - b|^2 cancels for near rows, and float32 would lose them
    a, b = left.astype(np.float64), right.astype(np.float64)
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * (a @ b.T)
    return np.asarray(-np.sqrt(np.maximum(squared, 0)), dtype=np.float32)


def manhattan(left: Vectors, right: Vectors) -> Vectors:
    """Negative Manhattan distance of all rows to all rows: ``(n, m)``."""
    scores = np.empty((len(left), len(right)), dtype=np.float32)
    for i, row in enumerate(left):
        scores[i] = -np.abs(right - row).sum(axis=1)
    return scores


SIMILARITIES: dict[str, Callable[[Vectors, Vectors], Vectors]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}

PAIRWISE: dict[str, Callable[[Vectors, Vectors], Vectors]] = {
    "cosine": lambda left, right: (unit_rows(left) * unit_rows(right)).sum(axis=-1),
    "dot": lambda left, right: (left * right).sum(axis=-1),
    "euclidean": lambda left, right: -np.linalg.norm(left - right, axis=-1),
    "manhattan": lambda left, right: -np.abs(left - right).sum(axis=-1),
}


def similarity(left: ArrayLike, right: ArrayLike, name: str = "cosine") -> Vectors:
    """Score every row of ``left`` against every row of ``right``: ``(n, width), (m, width) -> (n, m)``.

    A single vector ``(width,)`` counts as one row. Distances come out negated, so higher is nearer.

    >>> similarity([[1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]], "euclidean").round(1).tolist()
    [[-0.0, -2.200000047683716]]
    """
    a, b = _rows(left), _rows(right)
    if a.shape[1] != b.shape[1]:
        raise InputError(f"The vectors have widths {a.shape[1]} and {b.shape[1]}.", hint="Use one model for both.")
    return _choose(SIMILARITIES, name)(a, b)


def similarity_pairwise(left: ArrayLike, right: ArrayLike, name: str = "cosine") -> Vectors:
    """Score row ``i`` of ``left`` against row ``i`` of ``right``: two ``(n, width)`` give ``(n,)``.

    >>> similarity_pairwise([[1.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], "dot").tolist()
    [2.0, 3.0]
    """
    a, b = _rows(left), _rows(right)
    if a.shape != b.shape:
        raise InputError(f"Pairs need equal shapes, got {a.shape} and {b.shape}.", hint="Give one row per pair.")
    return _choose(PAIRWISE, name)(a, b).astype(np.float32)


def _rows(vectors: ArrayLike) -> Vectors:
    array = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    if array.ndim != 2:
        raise InputError(f"Vectors must have 1 or 2 axes, got shape {array.shape}.")
    return array


def _choose(
    table: dict[str, Callable[[Vectors, Vectors], Vectors]], name: str
) -> Callable[[Vectors, Vectors], Vectors]:
    check_name("similarity", name, table)
    return table[name]


def quantize_vectors(vectors: Vectors, output: OutputType, *, ranges: Array | None = None) -> Array:
    """Store vectors in fewer bits. ``(..., width)``.

    ``int8`` and ``uint8`` cut each column's range into 255 steps; ``ranges`` is ``(2, width)``, the lowest and
    highest value of each column. Without it the fixed range -1 to 1 is used (right for normalised vectors), so
    that a text gets the same bytes whatever stands beside it. ``binary`` and ``ubinary`` keep the sign bits,
    eight to a byte: ``(..., width / 8)`` as int8 or uint8.

    >>> quantize_vectors(np.array([[-1.0, 0.0, 0.5, 1.0]], dtype=np.float32), "int8").tolist()
    [[-128, 0, 63, 127]]
    """
    check_output(output)
    if output == "float32":
        return vectors
    if output in ("binary", "ubinary"):
        return _sign_bits(vectors, output)
    low, high = (-1.0, 1.0) if ranges is None else (ranges[0], ranges[1])
    if ranges is None and vectors.size and np.abs(vectors).max() > 1:
        logger.warning(
            "Values beyond -1 to 1 (up to %.2f) are cut in %s output. Use vectors of length 1, or give ranges.",
            np.abs(vectors).max(),
            output,
        )
    span = np.maximum(np.asarray(high) - low, 1e-12)
    steps = np.floor((vectors - low) / span * 255 + 0.5).clip(0, 255)
    return steps.astype(np.uint8) if output == "uint8" else (steps - 128).astype(np.int8)


def check_output(output: str) -> None:
    """Refuse an unknown type of output, before any work is done for it."""
    check_name("output", output, get_args(OutputType))


def _sign_bits(vectors: Vectors, output: str) -> NDArray[np.int8] | NDArray[np.uint8]:
    if vectors.shape[-1] % 8:
        raise InputError(
            f"{output} output packs 8 values to a byte, but the width is {vectors.shape[-1]}.",
            hint="Set truncate_dim to a multiple of 8.",
        )
    packed = np.packbits(vectors > 0, axis=-1)
    return packed if output == "ubinary" else (packed.astype(np.int16) - 128).astype(np.int8)
