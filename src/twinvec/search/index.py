"""What every index can do, whether it is exact or not."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.search.hits import Hits
from twinvec.search.index_settings import IndexSettings
from twinvec.search.rescoring import rescored
from twinvec.search.rows import numeric_rows
from twinvec.types import Array

__all__ = ["Index", "check_queries", "search_index"]


class Index(Protocol):
    """Vectors that can be searched by cosine; ids count them in the order in which they were added."""

    settings: IndexSettings
    width: int

    def __len__(self) -> int: ...

    @property
    def is_trained(self) -> bool:
        """Whether vectors can be added already."""
        ...

    def train(self, sample: Array) -> None:
        """Learn what the kind of index must know of the vectors, from a sample ``(n, width)``."""
        ...

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)``."""
        ...

    def search(self, queries: ArrayLike, k: int = 10) -> Hits:
        """The nearest ``k`` to each query ``(n, width)``, as far as the index can tell; ids are -1 where none is."""
        ...

    def write(self, folder: Path) -> None:
        """Put what ``read`` needs into a folder."""
        ...


def search_index(index: Index, queries: ArrayLike, *, k: int = 10, vectors: Array | None = None) -> Hits:
    """The ``k`` nearest to each query ``(n, width)`` or one ``(width,)``.

    With ``vectors``, from which the index was built (a memory-mapped file will do), more are looked up, and their
    scores are exact; without, scores are those of the index.
    """
    asked = check_queries(queries, index.width)
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    k = min(k, len(index))
    if not k:
        return Hits(np.empty((len(asked), 0), dtype=np.int64), np.empty((len(asked), 0), dtype=np.float32))
    if vectors is not None and len(vectors) != len(index):
        raise InputError(
            f"The index holds {len(index)} vectors, but {len(vectors)} were given.",
            hint="Give those from which it was built.",
        )
    if vectors is None or index.settings.kind == "exact":
        return index.search(asked, k)
    found = index.search(asked, min(k * index.settings.oversample, len(index)))
    return rescored(asked, found.ids, vectors, k=k)


def check_queries(queries: ArrayLike, width: int) -> Array:
    """Queries as an array ``(n, width)``, or an error."""
    asked = numeric_rows(np.atleast_2d(queries), "queries")
    if asked.shape[1] != width:
        raise InputError(
            f"The queries have width {asked.shape[1]}, the vectors {width}.", hint="Use one model for both."
        )
    return asked
