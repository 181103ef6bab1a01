"""Read the output of a bulk job: rows in the order of the source, or single texts by number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.bulk.job import SHARDS
from twinvec.bulk.manifest import Manifest, Result, read_manifest
from twinvec.bulk.plan import Marks
from twinvec.bulk.rows import read_rows
from twinvec.bulk.shards import REBUILD, ShardReader, open_shard, vectors_in
from twinvec.errors import InputError, check_at_least
from twinvec.types import Array, Ids

__all__ = ["Bulk", "BulkBatch", "open_bulk", "read_bulk"]

OPEN_SHARDS = 64


class BulkBatch(NamedTuple):
    """Some rows: ids (from the source, or row numbers), texts, and vectors ``(n, width)``."""

    ids: list[str] | NDArray[np.int64]
    texts: list[str]
    vectors: Array


@dataclass(frozen=True)
class Bulk:
    """A complete result. Its ``n`` unique texts have the numbers ``0`` to ``n - 1``."""

    folder: Path
    manifest: Manifest
    result: Result
    _opened: OrderedDict[str, ShardReader] = field(default_factory=OrderedDict, repr=False, compare=False)

    def rows(self, rows_per_batch: int = 8192) -> Iterator[BulkBatch]:
        """Yield all rows in the order of the source."""
        n_before = 0
        for numbers, ids in self._numbers(rows_per_batch):
            row_numbers = np.arange(n_before, n_before + len(numbers))
            yield BulkBatch(row_numbers if ids is None else ids, *self.take(numbers))
            n_before += len(numbers)

    def take(self, numbers: Sequence[int] | Ids) -> tuple[list[str], Array]:
        """The texts with these numbers, and their vectors ``(n, width)``."""
        wanted, which = np.unique(np.asarray(numbers, dtype=np.int64), return_inverse=True)
        parts = [self._part(index, wanted[here]) for index, here in self._by_shard(wanted)]
        texts = [text for part in parts for text in part[0]]
        vectors = np.concatenate([part[1] for part in parts]) if parts else np.empty((0, 0), dtype=np.float32)
        return [texts[index] for index in which.tolist()], vectors[which]

    def used(self) -> Marks | None:
        """The text numbers that appear in a row; None if all do."""
        if not self.result.unused:
            return None
        marks = Marks(max(shard.numbers.stop for shard in self.result.shards))
        for numbers, _ in self._numbers(1 << 16):
            marks.add(numbers)
        return marks

    def path(self, index: int) -> Path:
        """The file of a shard."""
        return self.folder / SHARDS / self.result.shards[index].name

    def _numbers(self, rows_per_batch: int) -> Iterator[tuple[Ids, list[str] | None]]:
        return read_rows(self.folder / self.result.rows_file.name, self.result.rows, rows_per_batch)

    def _by_shard(self, wanted: Ids) -> Iterator[tuple[int, slice]]:
        """The index of each shard that holds some of the sorted numbers, and the slice of numbers that it holds."""
        starts = np.array([shard.start for shard in self.result.shards])
        stops = np.array([shard.numbers.stop for shard in self.result.shards])
        owners = np.searchsorted(starts, wanted, side="right") - 1
        lost = wanted[(owners < 0) | (wanted >= stops[owners])]
        if len(lost):
            raise InputError(f"{self.folder} has no text with the number {lost[0]}.")
        edges = np.flatnonzero(np.diff(owners, prepend=-1, append=-1))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield int(owners[first]), slice(first, last)

    def _part(self, index: int, numbers: Ids) -> tuple[list[str], Array]:
        table = self._reader(index).take(numbers - self.result.shards[index].start, ["text", "vector"])
        return table["text"].to_pylist(), vectors_in(table)

    def _reader(self, index: int) -> ShardReader:
        path = self.path(index)
        if path.name not in self._opened:
            while len(self._opened) >= OPEN_SHARDS:
                self._opened.popitem(last=False)
            reader = open_shard(path)
            self._check(reader, index)
            self._opened[path.name] = reader
        self._opened.move_to_end(path.name)
        return self._opened[path.name]

    def _check(self, reader: ShardReader, index: int) -> None:
        result, shard = self.result, self.result.shards[index]
        if (reader.n, reader.width, reader.type) != (shard.n, result.width, result.type):
            raise InputError(
                f"The shard {self.path(index)} holds {reader.n} vectors of {reader.width} {reader.type} each, "
                f"but the manifest says {shard.n} of {result.width} {result.type}.",
                hint=REBUILD,
            )


def open_bulk(folder: str | PathLike[str]) -> Bulk:
    """Open the last complete result in a folder. A job that runs there meanwhile does not affect the reader."""
    path = Path(folder)
    manifest = read_manifest(path)
    if manifest is None:
        raise InputError(
            f"{path} is not the folder of a bulk job.", hint=f"Create one with: twinvec embed FILE --out {path}"
        )
    if manifest.result is None:
        raise InputError(f"The job in {path} is not complete.", hint="Run the same command again to continue it.")
    return Bulk(path, manifest, manifest.result)


def read_bulk(folder: str | PathLike[str], *, rows_per_batch: int = 8192) -> Iterator[BulkBatch]:
    """Yield the rows of a bulk job in the order of its source, in batches: ids, texts, vectors.

    Arrow shards are memory-mapped; of Parquet shards, only the needed row groups are decoded.
    """
    check_at_least(1, rows_per_batch=rows_per_batch)
    return open_bulk(folder).rows(rows_per_batch)
