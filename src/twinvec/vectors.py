"""Similarity and quantization of vectors. Pure functions on arrays.

Scores are similarities: higher means nearer, so distances are negated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import OUTPUT_TYPES, OutputType
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
Score = Callable[[Vectors, Vectors], Vectors]


def numeric_rows(vectors: ArrayLike, name: str) -> Array:
    """Convert vectors to an array of numbers ``(n, width)``, or raise InputError."""
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name} must be numbers of shape (n, width), got {array.dtype} of shape {array.shape}.",
            hint="Encode a list of texts to get them.",
        )
    return array


def checked_rows(vectors: ArrayLike, name: str) -> Array:
    """Convert vectors to an array ``(n, width)`` of finite numbers, or raise InputError."""
    array = numeric_rows(vectors, name)
    for start in range(0, len(array), ROWS_AT_ONCE):
        check_finite(array[start : start + ROWS_AT_ONCE], name, start=start)
    return array


def check_finite(rows: Array, name: str, *, start: int = 0) -> None:
    """Raise InputError if rows ``(n, width)`` hold NaN or infinity; ``start`` is the number of the first row."""
    row = _first_not_finite(rows)
    if row is not None:
        raise InputError(f"Row {start + row} of {name} holds NaN or infinity.", hint="Remove it, or encode it again.")


def checked_vectors(found: ArrayLike, texts: Sequence[str], *, width: int | None, source: str) -> Vectors:
    """Check the vectors that ``source`` returned; returns float32 ``(len(texts), width)``.

    >>> checked_vectors([[1, 2, 3]], ["a cat"], width=None, source="a server").dtype
    dtype('float32')
    """
    try:
        array = np.asarray(found)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source} returned data that numpy cannot read: {error}.") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{source} returned {array.dtype} of shape {array.shape}, not a table of numbers.",
            hint="Return an array of shape (texts, width).",
        )
    if len(array) != len(texts):
        raise InputError(f"{source} returned {len(array)} vectors for {len(texts)} texts.", hint="Return one per text.")
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"{source} returned vectors of width {array.shape[1]}; earlier vectors have width {width}.",
            hint="All vectors of a model must have the same width.",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # values too large for float32 become infinite, an error below
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
    """Convert a JSON list of numbers to float64, ``(n,)``; None for anything else, such as numeric strings.

    >>> number_row([1, 2.5]).tolist(), number_row(["1"]), number_row([True])
    ([1.0, 2.5], None, None)
    """
    if not isinstance(value, list) or not set(map(type, value)) <= {int, float}:
        return None
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:  # an integer too large for float64
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
    # float64: expanding |a - b|^2 cancels for near rows, too much for float32
    a, b = left.astype(np.float64), right.astype(np.float64)
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * (a @ b.T)
    return np.asarray(-np.sqrt(np.maximum(squared, 0)), dtype=np.float32)


def manhattan(left: Vectors, right: Vectors) -> Vectors:
    """Negative Manhattan distance of all rows to all rows: ``(n, m)``."""
    scores = np.empty((len(left), len(right)), dtype=np.float32)
    for i, row in enumerate(left):
        scores[i] = -np.abs(right - row).sum(axis=1)
    return scores


SIMILARITIES: dict[str, Score] = {"cosine": cosine, "dot": dot, "euclidean": euclidean, "manhattan": manhattan}
PAIRWISE: dict[str, Score] = {
    "cosine": lambda left, right: (unit_rows(left) * unit_rows(right)).sum(axis=-1),
    "dot": lambda left, right: (left * right).sum(axis=-1),
    "euclidean": lambda left, right: -np.linalg.norm(left - right, axis=-1),
    "manhattan": lambda left, right: -np.abs(left - right).sum(axis=-1),
}


def similarity(left: ArrayLike, right: ArrayLike, name: str = "cosine") -> Vectors:
    """Score every row of ``left`` against every row of ``right``: ``(n, width), (m, width) -> (n, m)``.

    A single vector ``(width,)`` counts as one row. Distances are negated, so higher is nearer.

    >>> similarity([[1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]], "euclidean").round(1).tolist()
    [[-0.0, -2.200000047683716]]
    """
    a, b = _rows(left), _rows(right)
    if a.shape[1] != b.shape[1]:
        raise InputError(f"The vectors have widths {a.shape[1]} and {b.shape[1]}.", hint="Use one model for both.")
    check_name("similarity", name, SIMILARITIES)
    return SIMILARITIES[name](a, b)


def similarity_pairwise(left: ArrayLike, right: ArrayLike, name: str = "cosine") -> Vectors:
    """Score row ``i`` of ``left`` against row ``i`` of ``right``: two ``(n, width)`` give ``(n,)``.

    >>> similarity_pairwise([[1.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], "dot").tolist()
    [2.0, 3.0]
    """
    a, b = _rows(left), _rows(right)
    if a.shape != b.shape:
        raise InputError(f"Pairs need equal shapes, got {a.shape} and {b.shape}.", hint="Pass one row per pair.")
    check_name("similarity", name, PAIRWISE)
    return PAIRWISE[name](a, b).astype(np.float32)


def _rows(vectors: ArrayLike) -> Vectors:
    array = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    if array.ndim != 2:
        raise InputError(f"Vectors must have 1 or 2 axes, got shape {array.shape}.")
    return array


def quantize_vectors(vectors: Vectors, output: OutputType, *, ranges: Array | None = None) -> Array:
    """Quantize vectors ``(..., width)`` to fewer bits.

    ``int8`` and ``uint8`` split the range of each column into 255 steps; ``ranges`` is ``(2, width)``, the lowest and
    highest value of each column. The default range is -1 to 1 (right for normalized vectors), so the bytes of a text
    do not depend on other texts. ``binary`` and ``ubinary`` keep the sign bits, eight to a byte: ``(..., width / 8)``
    as int8 or uint8.

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
            "Values outside -1 to 1 (up to %.2f) are clipped in %s output. Use vectors of length 1, or pass ranges.",
            np.abs(vectors).max(),
            output,
        )
    span = np.maximum(np.asarray(high) - low, 1e-12)
    steps = np.floor((vectors - low) / span * 255 + 0.5).clip(0, 255)
    return steps.astype(np.uint8) if output == "uint8" else (steps - 128).astype(np.int8)


def check_output(output: str) -> None:
    """Raise UnknownNameError for an unknown output type."""
    check_name("output", output, OUTPUT_TYPES)


def _sign_bits(vectors: Vectors, output: str) -> NDArray[np.int8] | NDArray[np.uint8]:
    if vectors.shape[-1] % 8:
        raise InputError(
            f"{output} output packs 8 values to a byte, but the width is {vectors.shape[-1]}.",
            hint="Set truncate_dim to a multiple of 8.",
        )
    packed = np.packbits(vectors > 0, axis=-1)
    return packed if output == "ubinary" else (packed.astype(np.int16) - 128).astype(np.int8)
