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

__all__ = ["RowSource", "build_index", "sample_rows"]

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
    with Progress(n, "indexing", shown=progress) as bar:
        for start in range(0, n, BLOCK_ROWS):
            block = vectors[start : min(start + BLOCK_ROWS, n)]
            index.add(block)
            bar.advance(len(block))
    return index


def sample_rows(vectors: RowSource, count: int) -> Array:
    """About ``count`` rows ``(count, width)``, in pieces from all over, which a disk reads faster than single rows."""
    n = vectors.shape[0]
    if count >= n:
        return np.asarray(vectors[0:n])
    size = -(-count // SAMPLE_PIECES)
    starts = np.linspace(0, n - size, -(-count // size)).astype(np.int64)
    return np.concatenate([vectors[start : start + size] for start in starts.tolist()])[:count]
