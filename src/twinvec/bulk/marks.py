"""Which numbers were seen, one bit each."""

from __future__ import annotations

import numpy as np

from twinvec.types import Array, Ids

__all__ = ["Marks"]


class Marks:
    """Bits for the numbers 0 to ``n - 1``.

    >>> marks = Marks(10)
    >>> marks.add(np.array([3, 9, 3, 12]))
    >>> marks.count(), marks.seen(range(8, 10)).tolist()
    (2, [False, True])
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._bytes = np.zeros(-(-n // 8), dtype=np.uint8)

    def add(self, numbers: Ids) -> None:
        """Mark some numbers, ``(m,)``; those from ``n`` on are passed over."""
        inside = numbers[numbers < self.n]
        np.bitwise_or.at(self._bytes, inside >> 3, np.left_shift(1, inside & 7).astype(np.uint8))

    def count(self) -> int:
        """How many are marked."""
        return sum(
            int(np.unpackbits(part).sum()) for part in np.array_split(self._bytes, 1 + len(self._bytes) // 2**20)
        )

    def seen(self, numbers: range) -> Array:
        """Whether each number of a range is marked, ``(len(numbers),)``."""
        first = numbers.start >> 3
        bits = np.unpackbits(self._bytes[first : -(-numbers.stop // 8)], bitorder="little").astype(bool)
        return bits[numbers.start - 8 * first :][: len(numbers)]
