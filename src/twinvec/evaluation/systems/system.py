"""What is judged: anything that turns texts into vectors, with a name, and an identity for the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from twinvec.errors import InputError
from twinvec.types import Array, Vectors

__all__ = ["Subject", "checked_vectors", "number_row"]


class Subject(Protocol):
    """Anything that can be judged.

    ``identity`` changes whenever the vectors could: two subjects of the same identity share cached vectors.
    ``width`` is None until it is known.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def identity(self) -> str:
        """A text that is another one when the vectors could be others."""
        ...

    @property
    def width(self) -> int | None:
        """Size of a vector, once it is known."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, row ``i`` for text ``i``."""
        ...


def checked_vectors(found: Array, n_texts: int, *, width: int | None, source: str) -> Vectors:
    """Vectors from outside as float32 ``(n_texts, width)``, refused where count, width or numbers are wrong.

    >>> checked_vectors(np.ones((2, 3)), 2, width=None, source="here").dtype
    dtype('float32')
    """
    if found.ndim != 2 or found.dtype.kind not in "fiu":
        raise InputError(f"{source} gave no table of numbers, but {found.dtype} of shape {found.shape}.")
    if len(found) != n_texts:
        raise InputError(f"{source} gave {len(found)} vectors for {n_texts} texts.", hint="It must give one for each.")
    if width is not None and found.shape[1] != width:
        raise InputError(
            f"{source} gave vectors of width {found.shape[1]}, but before of width {width}.",
            hint="All vectors of a model must be equally wide.",
        )
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # what is too large for float32 becomes infinite, and is refused below
        vectors = np.ascontiguousarray(found, dtype=np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"{source} gave a vector with NaN or infinite numbers, for text {row + 1} of {n_texts}.")
    return vectors


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
