"""An index from vectors that may be larger than memory: learnt from a sample, filled block by block."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from twinvec.errors import InputError
from twinvec.progress import Progress
from twinvec.search.index import Index
from twinvec.search.index_files import new_index
from twinvec.search.index_settings import IndexSettings, choose_index, sample_size
from twinvec.types import Array

__all__ = ["RowSource", "build_index", "fill_index", "sample_rows"]

BLOCK_ROWS = 65_536  # 100 MB of width 384 in float32
SAMPLE_PIECES = 256


class RowSource(Protocol):
    """Rows that can be read by slices: an array, a memory-mapped file, or something that makes them when asked."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, width)``."""
        ...

    def __getitem__(self, rows: slice, /) -> Array: ...


def build_index(
    vectors: RowSource,
    settings: IndexSettings | None = None,
    *,
    max_memory: int | None = None,
    progress: bool | None = None,
) -> Index:
    """An index of all ``vectors`` ``(n, width)``, of which a block is read at a time.

    Without ``settings`` they are chosen from the number of vectors and ``max_memory``, in bytes.
    """
    if len(vectors.shape) != 2:
        raise InputError(f"vectors must have the shape (n, width), got {vectors.shape}.")
    n, width = vectors.shape
    settings = settings or choose_index(n, width, max_memory)
    index = new_index(settings, width)
    if not index.is_trained:
        index.train(sample_rows(vectors, sample_size(settings, n)))
    fill_index(index, vectors, progress=progress)
    return index


def fill_index(index: Index, vectors: RowSource, *, stop: int | None = None, progress: bool | None = None) -> None:
    """Add to a trained index those rows of ``vectors`` ``(n, width)`` that it lacks, up to ``stop`` (default: all).

    Saved now and then between two stops, an index that takes hours to build is continued after a crash.
    """
    n = vectors.shape[0] if stop is None else min(stop, vectors.shape[0])
    if len(index) > vectors.shape[0]:
        raise InputError(
            f"The index holds {len(index)} vectors already, but only {vectors.shape[0]} were given.",
            hint="Give those from which it was begun, and more.",
        )
    with Progress(n - len(index), "indexing", shown=progress) as bar:
        for start in range(len(index), n, BLOCK_ROWS):
            block = vectors[start : min(start + BLOCK_ROWS, n)]
            index.add(block)
            bar.advance(len(block))


def sample_rows(vectors: RowSource, count: int) -> Array:
    """About ``count`` rows ``(count, width)``, in pieces from all over, which a disk reads faster than single rows."""
    n = vectors.shape[0]
    if count >= n:
        return np.asarray(vectors[0:n])
    size = -(-count // SAMPLE_PIECES)
    starts = np.linspace(0, n - size, -(-count // size)).astype(np.int64)
    return np.concatenate([vectors[start : start + size] for start in starts.tolist()])[:count]
