"""Assign numbers to texts and texts to shards, in limited memory."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import show_size
from twinvec.errors import InputError
from twinvec.types import Array, Ids
from twinvec.vector_store import text_key

__all__ = [
    "BYTES_PER_TEXT",
    "KEY_BYTES",
    "Keys",
    "Lookup",
    "Marks",
    "NewShard",
    "Planner",
    "ShardLimits",
    "free_ranges",
    "keys_of",
    "lookup_bytes",
    "used_bytes",
]

Keys: TypeAlias = NDArray[np.bytes_]  # (n,) of S16; single elements lose trailing zero bytes, arrays do not

KEY_BYTES = 16


def keys_of(texts: Sequence[str]) -> Keys:
    """The keys of texts, ``(n,)``: the start of their hashes.

    >>> keys = keys_of(["a cat", "a dog", "a cat"])
    >>> keys.dtype, bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (dtype('S16'), True, False)
    """
    return np.frombuffer(b"".join(text_key(text)[:KEY_BYTES] for text in texts), dtype=f"S{KEY_BYTES}")


class Marks:
    """A bit set of the numbers 0 to ``n - 1``.

    >>> marks = Marks(10)
    >>> marks.add(np.array([3, 9, 3, 12]))
    >>> marks.count(), marks.seen(range(8, 10)).tolist()
    (2, [False, True])
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._bytes = np.zeros(-(-n // 8), dtype=np.uint8)

    def add(self, numbers: Ids) -> None:
        """Mark numbers, ``(m,)``; those from ``n`` on are ignored."""
        inside = numbers[numbers < self.n]
        np.bitwise_or.at(self._bytes, inside >> 3, np.left_shift(1, inside & 7).astype(np.uint8))

    def count(self) -> int:
        """The count of marked numbers."""
        return sum(
            int(np.unpackbits(part).sum()) for part in np.array_split(self._bytes, 1 + len(self._bytes) // 2**20)
        )

    def seen(self, numbers: range) -> Array:
        """Whether each number of a range is marked, ``(len(numbers),)``."""
        first = numbers.start >> 3
        bits = np.unpackbits(self._bytes[first : -(-numbers.stop // 8)], bitorder="little").astype(bool)
        return bits[numbers.start - 8 * first :][: len(numbers)]


DEFAULT_LOOKUP_BYTES = 1 << 30  # 45 million texts; beyond that, the lookup is on disk
LEAST_LOOKUP_BYTES = 8 << 20
COPIES = 4  # of a shard's vectors: the result, the table, its pages, and the content of the file
OTHER_BYTES = 160 << 20  # texts and their tokens, batches, the runtime's buffers


def lookup_bytes(max_memory_bytes: int | None, *, used: int, shard: int) -> int:
    """The memory left for the lookup of known texts, after what is in use and what a new shard's vectors take."""
    if max_memory_bytes is None:
        return DEFAULT_LOOKUP_BYTES
    needed = used + COPIES * shard + OTHER_BYTES
    left = max_memory_bytes - needed
    if left < LEAST_LOOKUP_BYTES:
        raise InputError(
            f"The job needs about {show_size(needed + LEAST_LOOKUP_BYTES)} of memory, but the limit is "
            f"{show_size(max_memory_bytes)}.",
            hint="Raise --max-memory, or start over with smaller shards (--shard-rows).",
        )
    return left


def used_bytes() -> int:
    """The resident memory of this process; its peak where the current value is not available."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        return int(statistics.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


BYTES_PER_TEXT = KEY_BYTES + 8
PIECE_TEXTS = 1 << 16  # merged at a time


@dataclass(frozen=True, slots=True)
class Run:
    """Sorted keys and their numbers, both ``(n,)``."""

    keys: Keys
    numbers: Ids
    is_mapped: bool = False

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory; 0 if the arrays are memory-mapped."""
        return 0 if self.is_mapped else len(self.keys) * BYTES_PER_TEXT


class Lookup:
    """Numbers by key, in memory or on disk. Each key is added once."""

    def __init__(self, scratch: Path, memory_bytes: int) -> None:
        self._scratch, self._memory_bytes = scratch, memory_bytes
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory, without memory-mapped runs."""
        return sum(run.memory_bytes for run in self._runs)

    def find(self, keys: Keys) -> Ids:
        """The number of each key, ``(n,)``; -1 if unknown."""
        order = np.argsort(keys)  # sorted queries read neighboring keys of a run together
        wanted, numbers = keys[order], np.full(len(keys), -1, dtype=np.int64)
        for run in self._runs:
            indices = np.searchsorted(run.keys, wanted)
            indices[indices == len(run.keys)] = 0  # beyond the end: any key differs
            found = run.keys[indices] == wanted
            numbers[order[found]] = run.numbers[indices[found]]
        return numbers

    def add(self, keys: Keys, numbers: Ids) -> None:
        """Add new keys and their numbers, both ``(n,)``, in any order."""
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
                f"Cannot write the lookup of known texts to {self._scratch}: {error.strerror or error}.",
                hint="Free some disk space, or allow more memory, then run the same command again to continue.",
            ) from error


def _held(pieces: Iterator[Run], n: int) -> Run:
    keys, numbers, n_done = np.empty(n, dtype=f"S{KEY_BYTES}"), np.empty(n, dtype=np.int64), 0
    for piece in pieces:
        here = slice(n_done, n_done + len(piece.keys))
        keys[here], numbers[here] = piece.keys, piece.numbers
        n_done = here.stop
    return Run(keys, numbers)


def _pieces(left: Run, right: Run) -> Iterator[Run]:
    """Yield the merged run, a piece at a time."""
    longer, shorter = (left, right) if len(left.keys) >= len(right.keys) else (right, left)
    started = 0
    for start in range(0, len(longer.keys), PIECE_TEXTS):
        stop = min(start + PIECE_TEXTS, len(longer.keys))
        is_last = stop == len(longer.keys)
        until = len(shorter.keys) if is_last else int(np.searchsorted(shorter.keys, longer.keys[stop : stop + 1])[0])
        keys = np.concatenate([longer.keys[start:stop], shorter.keys[started:until]])
        numbers = np.concatenate([longer.numbers[start:stop], shorter.numbers[started:until]])
        order = np.argsort(keys, kind="stable")
        yield Run(keys[order], numbers[order])
        started = until


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """A shard is full at this many texts or characters, whichever comes first."""

    rows: int
    characters: int


@dataclass(frozen=True, slots=True)
class NewShard:
    """Texts to embed as one shard. Text ``i`` has the number ``start + i``; ``keys`` is ``(n,)``."""

    start: int
    texts: list[str]
    keys: Keys


def free_ranges(taken: Iterable[range]) -> Iterator[range]:
    """Yield the ranges of numbers that no shard has, in order; the last range is practically endless.

    >>> [(free.start, free.stop) for free in free_ranges([range(4, 6), range(0, 2)])][0]
    (2, 4)
    """
    end = 0
    for span in sorted(taken, key=lambda span: span.start):
        if span.start > end:
            yield range(end, span.start)
        end = max(end, span.stop)
    yield range(end, sys.maxsize)


class Planner:
    """Assigns numbers to texts, and collects new texts into shards."""

    def __init__(self, lookup: Lookup, taken: Iterable[range], limits: ShardLimits) -> None:
        self._lookup, self._limits = lookup, limits
        self._free = free_ranges(taken)
        self._range = next(self._free)
        self._texts: list[str] = []
        self._keys: list[Keys] = []
        self._n_characters = 0
        self._digest = hashlib.sha256()
        self.n_new = 0

    @property
    def source_sha256(self) -> str:
        """The digest of all texts so far, in order."""
        return self._digest.hexdigest()

    def take(self, texts: Sequence[str]) -> tuple[Ids, list[NewShard]]:
        """Return the numbers of the next texts of the source, ``(n,)``, and the shards that they fill."""
        keys = keys_of(texts)
        self._digest.update(keys.tobytes())
        numbers = self._lookup.find(keys)
        unknown = np.flatnonzero(numbers < 0)
        _, first, which = np.unique(keys[unknown], return_index=True, return_inverse=True)
        by_appearance = np.sort(first)
        new = unknown[by_appearance]
        assigned, filled = self._gather([texts[row] for row in new.tolist()], keys[new])
        self._lookup.add(keys[new], assigned)
        self.n_new += len(new)
        numbers[unknown] = assigned[np.searchsorted(by_appearance, first)][which]
        return numbers, filled

    def _gather(self, texts: list[str], keys: Keys) -> tuple[Ids, list[NewShard]]:
        """Put new texts into shards; return their numbers, ``(n,)``, and the shards that are full now."""
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)  # characters up to each text
        assigned: list[Ids] = []
        filled: list[NewShard] = []
        done = 0
        while done < len(texts):
            started = ends[done - 1] if done else 0
            n_characters_left = self._limits.characters - self._n_characters
            n_by_characters = int(np.searchsorted(ends, started + n_characters_left)) + 1 - done
            n_by_rows = min(self._limits.rows, len(self._range)) - len(self._texts)
            n = min(n_by_characters, n_by_rows, len(texts) - done)
            first = self._range.start + len(self._texts)
            assigned.append(np.arange(first, first + n))
            self._texts += texts[done : done + n]
            self._keys.append(keys[done : done + n])
            done += n
            self._n_characters += int(ends[done - 1] - started)
            if n in (n_by_rows, n_by_characters):
                filled.append(self._closed())
        return np.concatenate([np.empty(0, dtype=np.int64), *assigned]), filled

    def rest(self) -> list[NewShard]:
        """The last shard, full or not; empty if no texts are left."""
        return [self._closed()] if self._texts else []

    def _closed(self) -> NewShard:
        shard = NewShard(self._range.start, self._texts, np.concatenate(self._keys))
        self._range = range(shard.start + len(shard.texts), self._range.stop)
        if not self._range:
            self._range = next(self._free)
        self._texts, self._keys, self._n_characters = [], [], 0
        return shard
