"""Which text gets which number, and which texts make a shard: decided by the source and the finished shards alone.

Every different text has a number. New texts take the free numbers in the order in which they come: first the gaps
between the shards that are there, then those after the last. A gap is what a shard left that was lost, in flight or
damaged. Since its texts come in the same order in every run, they fill it again as they did before; so a job that is
stopped anywhere, however often, ends with the same shards as one that is not.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.bulk.keys import Keys, keys_of
from twinvec.bulk.lookup import Lookup
from twinvec.types import Ids

__all__ = ["NewShard", "Planner", "ShardLimits", "free_ranges"]


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """A shard is full at this many texts, or at this many characters, whichever comes first."""

    rows: int
    characters: int


@dataclass(frozen=True, slots=True)
class NewShard:
    """Texts to embed together. Text ``i`` has the number ``start + i``; ``keys`` is ``(n,)``."""

    start: int
    texts: list[str]
    keys: Keys


def free_ranges(taken: Iterable[range]) -> Iterator[range]:
    """The numbers that no shard has, in order; the last range has no end to speak of.

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
    """Gives numbers to texts, and gathers those that are new into shards."""

    def __init__(self, lookup: Lookup, taken: Iterable[range], limits: ShardLimits) -> None:
        self._lookup, self._limits = lookup, limits
        self._free = free_ranges(taken)
        self._range = next(self._free)
        self._texts: list[str] = []
        self._keys: list[Keys] = []
        self._n_characters = 0
        self._digest = hashlib.sha256()
        self.n_new = 0  # texts that were not known, so far

    @property
    def source_sha256(self) -> str:
        """A digest of all texts taken so far, in their order."""
        return self._digest.hexdigest()

    def take(self, texts: Sequence[str]) -> tuple[Ids, list[NewShard]]:
        """The numbers of the next texts of the source, ``(n,)``, and the shards that they filled."""
        keys = keys_of(texts)
        self._digest.update(keys.tobytes())
        numbers = self._lookup.find(keys)
        unknown = np.flatnonzero(numbers < 0)
        _, first, which = np.unique(keys[unknown], return_index=True, return_inverse=True)
        by_appearance = np.sort(first)
        new = unknown[by_appearance]
        given, filled = self._gather([texts[row] for row in new.tolist()], keys[new])
        self._lookup.add(keys[new], given)
        self.n_new += len(new)
        numbers[unknown] = given[np.searchsorted(by_appearance, first)][which]
        return numbers, filled

    def _gather(self, texts: list[str], keys: Keys) -> tuple[Ids, list[NewShard]]:
        """Put new texts into shards; gives their numbers, ``(n,)``, and the shards that are full now."""
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)  # characters up to each text
        given: list[Ids] = []
        filled: list[NewShard] = []
        done = 0
        while done < len(texts):
            begun = ends[done - 1] if done else 0
            n_by_characters = (
                int(np.searchsorted(ends, begun + self._limits.characters - self._n_characters)) + 1 - done
            )
            n_by_rows = min(self._limits.rows, len(self._range)) - len(self._texts)
            n = min(n_by_characters, n_by_rows, len(texts) - done)
            first = self._range.start + len(self._texts)
            given.append(np.arange(first, first + n))
            self._texts += texts[done : done + n]
            self._keys.append(keys[done : done + n])
            done += n
            self._n_characters += int(ends[done - 1] - begun)
            if n in (n_by_rows, n_by_characters):
                filled.append(self._closed())
        return np.concatenate([np.empty(0, dtype=np.int64), *given]), filled

    def rest(self) -> list[NewShard]:
        """The last shard, which need not be full; none if there are no texts left."""
        return [self._closed()] if self._texts else []

    def _closed(self) -> NewShard:
        shard = NewShard(self._range.start, self._texts, np.concatenate(self._keys))
        self._range = range(shard.start + len(shard.texts), self._range.stop)
        if not self._range:
            self._range = next(self._free)
        self._texts, self._keys, self._n_characters = [], [], 0
        return shard
