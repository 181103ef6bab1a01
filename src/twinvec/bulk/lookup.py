"""Which texts have a number already: a look-up by key that grows without limit in bounded memory.

Keys are kept in sorted runs. A new run is merged with its neighbor while that is not twice as large, so there are at
most about log2(n) runs, and each key is moved as often. 24 bytes a text: runs that would not fit in the memory
allowed are written to unnamed files in ``scratch`` and mapped, so a process that is killed leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from twinvec.bulk.keys import KEY_BYTES, Keys
from twinvec.errors import InputError
from twinvec.types import Ids

__all__ = ["BYTES_PER_TEXT", "Lookup"]

BYTES_PER_TEXT = KEY_BYTES + 8
PIECE_TEXTS = 1 << 16  # merged at once


@dataclass(frozen=True, slots=True)
class Run:
    """Keys in order, and the number of each: both ``(n,)``."""

    keys: Keys
    numbers: Ids
    is_mapped: bool = False

    @property
    def memory_bytes(self) -> int:
        """What it takes of this process's own memory."""
        return 0 if self.is_mapped else len(self.keys) * BYTES_PER_TEXT


class Lookup:
    """Numbers by key. Each key is added once."""

    def __init__(self, scratch: Path, memory_bytes: int) -> None:
        self._scratch, self._memory_bytes = scratch, memory_bytes
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    @property
    def memory_bytes(self) -> int:
        """Memory in use, without what is mapped."""
        return sum(run.memory_bytes for run in self._runs)

    def find(self, keys: Keys) -> Ids:
        """The number of each key, ``(n,)``; -1 where it is not known."""
        order = np.argsort(keys)  # neighbors in a run are then asked for together
        asked, numbers = keys[order], np.full(len(keys), -1, dtype=np.int64)
        for run in self._runs:
            places = np.searchsorted(run.keys, asked)
            places[places == len(run.keys)] = 0  # beyond the end: compare with any
            found = run.keys[places] == asked
            numbers[order[found]] = run.numbers[places[found]]
        return numbers

    def add(self, keys: Keys, numbers: Ids) -> None:
        """Remember the numbers of keys that are not known yet. Both are ``(n,)``, in any order."""
        if not len(keys):
            return
        order = np.argsort(keys)
        run = Run(keys[order], numbers[order])
        while self._runs and len(self._runs[-1].keys) < 2 * len(run.keys):
            run = self._merged(self._runs.pop(), run)
        self._runs.append(run)

    def _merged(self, left: Run, right: Run) -> Run:
        n = len(left.keys) + len(right.keys)
        needed = self.memory_bytes + left.memory_bytes + right.memory_bytes + n * BYTES_PER_TEXT
        if needed <= self._memory_bytes:
            return _held(_pieces(left, right), n)
        return self._written(_pieces(left, right), n)

    def _written(self, pieces: Iterator[Run], n: int) -> Run:
        try:
            with TemporaryFile(dir=self._scratch) as keys, TemporaryFile(dir=self._scratch) as numbers:
                for piece in pieces:
                    keys.write(np.ascontiguousarray(piece.keys).data)
                    numbers.write(np.ascontiguousarray(piece.numbers).data)
                keys.flush()
                numbers.flush()
                return Run(
                    np.memmap(keys, dtype=f"S{KEY_BYTES}", mode="r", shape=(n,)),
                    np.memmap(numbers, dtype=np.int64, mode="r", shape=(n,)),
                    is_mapped=True,
                )
        except OSError as error:
            raise InputError(
                f"Cannot write the look-up of known texts to {self._scratch}: {error.strerror or error}.",
                hint="Make room, or allow more memory; what is embedded stays, and the same command goes on.",
            ) from error


def _held(pieces: Iterator[Run], n: int) -> Run:
    keys, numbers, n_done = np.empty(n, dtype=f"S{KEY_BYTES}"), np.empty(n, dtype=np.int64), 0
    for piece in pieces:
        here = slice(n_done, n_done + len(piece.keys))
        keys[here], numbers[here] = piece.keys, piece.numbers
        n_done = here.stop
    return Run(keys, numbers)


def _pieces(left: Run, right: Run) -> Iterator[Run]:
    """The merged run, a piece at a time."""
    longer, shorter = (left, right) if len(left.keys) >= len(right.keys) else (right, left)
    begun = 0
    for start in range(0, len(longer.keys), PIECE_TEXTS):
        stop = min(start + PIECE_TEXTS, len(longer.keys))
        is_last = stop == len(longer.keys)
        until = len(shorter.keys) if is_last else int(np.searchsorted(shorter.keys, longer.keys[stop : stop + 1])[0])
        keys = np.concatenate([longer.keys[start:stop], shorter.keys[begun:until]])
        numbers = np.concatenate([longer.numbers[start:stop], shorter.numbers[begun:until]])
        order = np.argsort(keys, kind="stable")
        yield Run(keys[order], numbers[order])
        begun = until
