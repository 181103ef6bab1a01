"""All pairs of rows, each once, as few large blocks: the upper triangle, halved again and again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

__all__ = ["PairBlock", "triangle_blocks"]


class PairBlock(NamedTuple):
    """Rows ``left`` with rows ``right``: two ranges that do not meet, or the same one twice."""

    left: slice
    right: slice

    @property
    def is_diagonal(self) -> bool:
        """Whether both are the same rows, so that half of the block is not wanted."""
        return self.left == self.right


def triangle_blocks(n: int, n_rows: int, n_columns: int) -> Iterator[PairBlock]:
    """Blocks that cover every pair of ``n`` rows once, the largest first; none is larger than asked.

    Blocks on the diagonal are half as high as others, because half of what they compute is not wanted.

    >>> [(block.left.start, block.right.start) for block in triangle_blocks(4, 2, 4)]
    [(0, 2), (0, 1), (0, 0), (1, 1), (2, 3), (2, 2), (3, 3)]
    """
    yield from _triangle(0, n, n_rows, n_columns)


def _triangle(start: int, stop: int, n_rows: int, n_columns: int) -> Iterator[PairBlock]:
    if stop - start <= max(n_rows // 2, 1):
        if stop > start:
            yield PairBlock(slice(start, stop), slice(start, stop))
        return
    middle = (start + stop) // 2
    for left in _even_slices(start, middle, n_rows):
        for right in _even_slices(middle, stop, n_columns):
            yield PairBlock(left, right)
    yield from _triangle(start, middle, n_rows, n_columns)
    yield from _triangle(middle, stop, n_rows, n_columns)


def _even_slices(start: int, stop: int, longest: int) -> Iterator[slice]:
    """Slices of about equal length, none longer than ``longest``: a short last one would keep BLAS from its best."""
    count = -(-(stop - start) // longest)
    ends = [start + (stop - start) * place // count for place in range(count + 1)]
    return (slice(first, last) for first, last in pairwise(ends))
