"""Exact search as an index: the vectors themselves, in memory or mapped from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.files import mapped_vectors
from twinvec.search.exact import search
from twinvec.search.hits import Hits
from twinvec.search.index_settings import IndexSettings
from twinvec.search.rows import check_widths, numeric_rows, unit_rows_of
from twinvec.types import Array, Vectors

__all__ = ["ExactIndex"]

FILE = "vectors.npy"


class ExactIndex:
    """Vectors at length 1, compared one and all. What was read from a file stays there, mapped."""

    def __init__(self, settings: IndexSettings, width: int, vectors: Vectors) -> None:
        self.settings, self.width = settings, width
        self._parts = [vectors]

    @classmethod
    def empty(cls, settings: IndexSettings, width: int) -> ExactIndex:
        """An index without vectors."""
        return cls(settings, width, np.empty((0, width), dtype=np.float32))

    @classmethod
    def read(cls, folder: Path, settings: IndexSettings, width: int) -> ExactIndex:
        """The index in a folder."""
        vectors = mapped_vectors(folder / FILE, hint="Build the index again.")
        if vectors.shape[1] != width or vectors.dtype != np.float32:
            raise InputError(
                f"{folder / FILE} holds {vectors.dtype} of shape {vectors.shape}, but the index has the width {width}.",
                hint="Build the index again.",
            )
        return cls(settings, width, vectors)

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def is_trained(self) -> bool:
        """There is nothing to learn."""
        return True

    def train(self, sample: Array) -> None:
        """There is nothing to learn."""

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)``."""
        rows = numeric_rows(vectors, "vectors")
        check_widths(rows, self._parts[0])
        units = unit_rows_of(rows)
        self._parts.append(units.copy() if units is rows else units)  # the caller's array may change

    def search(self, queries: ArrayLike, k: int = 10) -> Hits:
        """The nearest ``k`` to each query ``(n, width)``."""
        return search(queries, self.vectors(), k=k)

    def vectors(self) -> Vectors:
        """All vectors, ``(n, width)``."""
        parts = [part for part in self._parts if len(part)] or self._parts
        self._parts = [parts[0] if len(parts) == 1 else np.concatenate(parts)]
        return self._parts[0]

    def write(self, folder: Path) -> None:
        """Put the vectors into a folder."""
        np.save(folder / FILE, self.vectors())
