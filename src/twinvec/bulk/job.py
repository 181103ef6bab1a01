"""The bulk job: rows in, shards and a manifest out, whatever happens in between.

Every run, the first, one that goes on, and one over changed rows, does the same: check the shards that are there, read
the source from its start, look every text up, embed those that are not there, and at last name the rows and replace the
manifest. Nothing is embedded twice, and until the last step readers see the result of the run before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path

import numpy as np

from twinvec.bulk.folder import SHARDS, begin, check_folder, clear, locked, remove_old_rows
from twinvec.bulk.lookup import Lookup
from twinvec.bulk.manifest import JobSpec, Manifest, Result, read_manifest, write_manifest
from twinvec.bulk.marks import Marks
from twinvec.bulk.memory import lookup_bytes, used_bytes
from twinvec.bulk.model import BulkModel
from twinvec.bulk.planning import NewShard, Planner, ShardLimits
from twinvec.bulk.rows import RowsWriter
from twinvec.bulk.settings import BulkReport, BulkSettings, BulkState
from twinvec.bulk.shard_file import pyarrow
from twinvec.bulk.shard_reading import open_shard
from twinvec.bulk.source import FileSource, RowBlock, Source, blocks
from twinvec.bulk.store import ShardStore, StoredShard
from twinvec.bulk.workers import LocalWorkers, Workers
from twinvec.errors import InputError
from twinvec.model_identity import engine_versions

__all__ = ["embed_bulk"]

SHARD_CHARACTERS = 1 << 25  # so that long texts do not fill the memory either

Watch = Callable[[BulkState], None]


def embed_bulk(
    source: Source | str | PathLike[str],
    folder: str | PathLike[str],
    model: BulkModel,
    *,
    settings: BulkSettings | None = None,
    workers: Workers | None = None,
    watch: Watch | None = None,
) -> BulkReport:
    """Embed the texts of a source into a folder of shards; what is there already is not embedded again.

    Args:
        source: a file's name, or a :class:`FileSource` that says which column.
        workers: who embeds: this process, or :class:`RayWorkers`.
        watch: called after every block of rows and every shard.
    """
    pyarrow()  # before any work
    rows = FileSource(str(source)) if isinstance(source, (str, PathLike)) else source
    target, chosen, crew = Path(folder), settings or BulkSettings(), workers or LocalWorkers(model)
    check_folder(target, force=chosen.force)
    stream = _begun(blocks(rows), rows)
    wanted = _spec(target, model, chosen)
    lookup = Lookup(target, _lookup_bytes(chosen, crew, wanted))
    with locked(target):
        if chosen.force:
            clear(target)
        return _run(target, stream, begin(target, wanted), lookup, crew, _Told(rows, watch))


def _begun(stream: Iterator[RowBlock], source: Source) -> Iterator[RowBlock]:
    """The same blocks, of which the first is read now: a wrong file shows before anything is written."""
    for first in stream:
        return chain([first], stream)
    raise InputError(f"{source.described().get('name')} holds no rows.", hint="Give it at least one row.")


def _spec(folder: Path, model: BulkModel, settings: BulkSettings) -> JobSpec:
    """The job that is wanted; what is not said of its shards is as it was begun."""
    found = None if settings.force else read_manifest(folder)
    return JobSpec(
        model=model.name,
        model_sha256=model.sha256(),
        settings=model.deciding(),
        shard_format=settings.shard_format or (found.job.shard_format if found else "parquet"),
        shard_rows=settings.shard_rows or (found.job.shard_rows if found else 16_384),
        versions=engine_versions(),
    )


def _lookup_bytes(settings: BulkSettings, workers: Workers, spec: JobSpec) -> int:
    shard = workers.shard_bytes(spec.shard_rows) if settings.max_memory_bytes else 0
    return lookup_bytes(settings.max_memory_bytes, used=used_bytes(), shard=shard)


def _run(
    folder: Path, stream: Iterator[RowBlock], manifest: Manifest, lookup: Lookup, workers: Workers, told: _Told
) -> BulkReport:
    """Read the source to its end, embed what is new, and make the result the manifest's."""
    spec, source = manifest.job, told.source
    store = ShardStore(folder / SHARDS, spec.shard_format)
    known = list(_known(store, lookup))
    marks = Marks(max((shard.numbers.stop for shard in known), default=0))
    planner = Planner(lookup, [shard.numbers for shard in known], ShardLimits(spec.shard_rows, SHARD_CHARACTERS))
    with RowsWriter(folder, has_ids=source.has_ids) as rows:
        new = []
        for shard in workers.run(_planned(stream, planner, rows, marks, told), store, spec.shard_format):
            new.append(shard)
            told.embedded(shard.n)
        shards = sorted([*known, *new], key=lambda shard: shard.start)
        n_unused = sum(shard.n for shard in shards if shard.start < marks.n) - marks.count()
        kind = open_shard(store.folder / shards[0].name)
        result = Result(
            source={**source.described(), "sha256": planner.source_sha256},
            rows=told.n_rows,
            texts=sum(shard.n for shard in shards) - n_unused,
            unused=n_unused,
            width=kind.width,
            type=kind.type,
            rows_file=rows.finish(),
            shards=tuple(shards),
        )
    write_manifest(folder, replace(manifest, result=result))
    remove_old_rows(folder, result.rows_file.name)
    return BulkReport(
        n_rows=result.rows,
        n_texts=result.texts,
        n_embedded=told.n_embedded,
        n_unused=n_unused,
        n_damaged=store.n_damaged,
        n_cut=sum(shard.n_cut for shard in shards),
        longest=max((shard.longest for shard in shards), default=0),
    )


def _known(store: ShardStore, lookup: Lookup) -> Iterator[StoredShard]:
    """The shards that are there and whole; their texts are known from now on."""
    for shard, keys in store.checked():
        lookup.add(keys, np.arange(shard.start, shard.numbers.stop))
        yield shard


def _planned(
    stream: Iterator[RowBlock], planner: Planner, rows: RowsWriter, marks: Marks, told: _Told
) -> Iterator[NewShard]:
    """The shards to embed, drawn from the source as they are asked for."""
    for block in stream:
        numbers, filled = planner.take(block.texts)
        rows.add(numbers, block.ids)
        marks.add(numbers)
        told.read(len(block.texts), n_new=planner.n_new)
        yield from filled
    yield from planner.rest()


class _Told:
    """Counts, and tells whoever watches."""

    def __init__(self, source: Source, watch: Watch | None) -> None:
        self.source, self._watch = source, watch
        self._total = source.n_rows() if watch else None
        self.n_rows = self.n_embedded = self._n_new = 0

    def read(self, n: int, *, n_new: int) -> None:
        """So many rows more were read; among all so far are so many new texts."""
        self.n_rows += n
        self._n_new = n_new
        self._tell()

    def embedded(self, n: int) -> None:
        """So many texts more are embedded and on the disk."""
        self.n_embedded += n
        self._tell()

    def _tell(self) -> None:
        if self._watch:
            self._watch(BulkState(self.n_rows, self._total, self._n_new, self.n_embedded))
