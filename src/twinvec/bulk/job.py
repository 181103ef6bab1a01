"""The bulk job: rows in, shards and a manifest out, safe to kill at any moment."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np

from twinvec.bulk.manifest import (
    MANIFEST,
    BulkReport,
    BulkSettings,
    BulkState,
    JobSpec,
    Manifest,
    Result,
    differences,
    read_manifest,
    write_manifest,
)
from twinvec.bulk.plan import Lookup, Marks, NewShard, Planner, ShardLimits, lookup_bytes, used_bytes
from twinvec.bulk.rows import ROWS_NAME, RowsWriter
from twinvec.bulk.shards import SHARD_NAME, ShardStore, StoredShard, embedded_shard, open_shard, pyarrow
from twinvec.bulk.source import FileSource, RowBlock, Source, blocks
from twinvec.choices import OutputType, ShardFormat
from twinvec.embedder import Embedder, ModelEmbedder, ModelLike, as_embedder, width_of
from twinvec.errors import InputError
from twinvec.files import check_path, try_lock
from twinvec.model.identity import engine_versions
from twinvec.ownership import FolderKind, check_ours, is_marked, mark, remove_ours, remove_partial_markers

__all__ = ["SHARDS", "Workers", "begin", "check_folder", "clear", "embed_bulk", "locked"]


class Workers(Protocol):
    """Embeds shards and stores them, drawing the next as there is someone to do it."""

    def shard_bytes(self, shard_rows: int) -> int:
        """The size of a shard's vectors in the memory of this process."""
        ...

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Every shard once it is on the disk, in any order."""
        ...


class LocalWorkers:
    """Embeds in this process, one shard after the other."""

    def __init__(self, embedder: Embedder, output: OutputType = "float32") -> None:
        self._embedder, self._output = embedder, output

    def shard_bytes(self, shard_rows: int) -> int:
        """The size of a shard's vectors; the model is loaded to know it, and is in the memory from then on."""
        return 4 * width_of(self._embedder) * shard_rows

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Every shard once it is on the disk, in order: the next starts only then, so a kill costs one at most."""
        for shard in shards:
            yield store.put(embedded_shard(shard, self._embedder, self._output, format))


logger = logging.getLogger(__name__)

SHARDS = "texts"
LOCK = ".lock"
_FILES = rf"{re.escape(MANIFEST)}|{ROWS_NAME.pattern}"
KIND = FolderKind(
    "twinvec-bulk-1",
    "a bulk job",
    names=re.compile(
        rf"{re.escape(LOCK)}|{_FILES}|\.(?:{_FILES}|rows\.parquet)\.partial.*"
        rf"|{SHARDS}/(?:|{SHARD_NAME.pattern}|\.{SHARD_NAME.pattern}\.partial.*)"
    ),
)


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Refuse, before anything is written, a folder that holds something else than a job.

    With ``force``, which removes the job, also one that holds anything beside it.
    """
    check_path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file.", hint="Give the name of a folder.")
    if force:
        check_ours(folder, KIND)
    if not folder.exists() or is_marked(folder, KIND):
        return
    foreign = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if foreign:
        raise InputError(f"{folder} holds no bulk job, but {foreign[0]!r}.", hint="Give a new folder, or an empty one.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other writers out; the system lifts the lock when the process ends, however it does."""
    try:
        mark(folder, KIND)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise InputError(f"Cannot write in the folder {folder}: {error.strerror or error}.") from error
    with lock:
        if not try_lock(lock.fileno()):
            raise InputError(
                f"Another process is writing to {folder}.", hint="Wait for it, or stop it; nothing of it is lost."
            )
        yield


def begin(folder: Path, wanted: JobSpec) -> Manifest:
    """The manifest to go on from: a new one in an empty folder; a folder of another job is refused."""
    remove_partial_markers(folder)
    for path in folder.glob(".*.partial*"):  # what a process that was killed left
        if KIND.names and KIND.names.fullmatch(path.name):
            path.unlink()
    manifest = read_manifest(folder)
    if manifest is None:
        manifest = Manifest(wanted)
        write_manifest(folder, manifest)
        return manifest
    changed = list(differences(manifest.job, wanted))
    if changed:
        raise InputError(
            f"{folder} was started with other settings: {'; '.join(changed)}.",
            hint="Use the same settings, write to another folder, or start over with --force.",
        )
    _warn_of_versions(folder, manifest.job, wanted)
    return manifest


def clear(folder: Path) -> None:
    """Remove a job's files, so that it starts over; a folder that holds anything else is refused."""
    check_ours(folder, KIND)
    remove_ours(folder, KIND, keep=[LOCK])


def remove_old_rows(folder: Path, kept: str) -> None:
    """Remove the rows of results that are no longer the manifest's."""
    for path in folder.glob("rows-*.parquet"):
        if path.name != kept and ROWS_NAME.fullmatch(path.name):
            path.unlink()


def _warn_of_versions(folder: Path, found: JobSpec, wanted: JobSpec) -> None:
    changed = [
        f"{name} {found.versions.get(name, 'none')} to {wanted.versions.get(name, 'none')}"
        for name in {**found.versions, **wanted.versions}
        if found.versions.get(name) != wanted.versions.get(name)
    ]
    if changed:
        logger.warning(
            "%s was started with other versions (%s); new vectors may differ from the old ones in their last digits.",
            folder,
            ", ".join(changed),
        )


SHARD_CHARACTERS = 1 << 25  # so that long texts do not fill the memory either

Watch = Callable[[BulkState], None]


def embed_bulk(
    source: Source | str | PathLike[str],
    folder: str | PathLike[str],
    model: ModelLike | Embedder,
    *,
    settings: BulkSettings | None = None,
    workers: Workers | None = None,
    watch: Watch | None = None,
) -> BulkReport:
    """Embed the texts of a source into a folder of shards; what is there already is not embedded again.

    Args:
        source: a file's name, or a :class:`FileSource` that says which column.
        model: a model's name or folder, an encoder, or anything else that embeds.
        workers: who embeds: this process, or :class:`RayWorkers`.
        watch: called after every block of rows and every shard.
    """
    pyarrow()  # before any work
    rows = FileSource(str(source)) if isinstance(source, (str, PathLike)) else source
    target, chosen, embedder = Path(folder), settings or BulkSettings(), as_embedder(model)
    crew = workers or LocalWorkers(embedder, chosen.output)
    check_folder(target, force=chosen.force)
    stream = _started(blocks(rows), rows)
    wanted = _spec(target, embedder, chosen)
    lookup = Lookup(target, _lookup_bytes(chosen, crew, wanted))
    with locked(target):
        if chosen.force:
            clear(target)
        return _run(target, stream, begin(target, wanted), lookup, crew, _Counts(rows, watch))


def _started(stream: Iterator[RowBlock], source: Source) -> Iterator[RowBlock]:
    """The same blocks, of which the first is read now: a wrong file shows before anything is written."""
    for first in stream:
        return chain([first], stream)
    raise InputError(f"{source.described().get('name')} holds no rows.", hint="Give it at least one row.")


def _spec(folder: Path, embedder: Embedder, settings: BulkSettings) -> JobSpec:
    """The job that is wanted; what is not given for its shards stays as the job was started."""
    found = None if settings.force else read_manifest(folder)
    name, content = embedder.name, embedder.identity
    if isinstance(embedder, ModelEmbedder):  # whose settings stand beside its content
        name, content = embedder.model, embedder.content
    return JobSpec(
        model=name,
        model_sha256=content,
        settings={**embedder.settings, "output": settings.output},
        shard_format=settings.shard_format or (found.job.shard_format if found else "parquet"),
        shard_rows=settings.shard_rows or (found.job.shard_rows if found else 16_384),
        versions=engine_versions(),
    )


def _lookup_bytes(settings: BulkSettings, workers: Workers, spec: JobSpec) -> int:
    shard = workers.shard_bytes(spec.shard_rows) if settings.max_memory_bytes else 0
    return lookup_bytes(settings.max_memory_bytes, used=used_bytes(), shard=shard)


def _run(
    folder: Path, stream: Iterator[RowBlock], manifest: Manifest, lookup: Lookup, workers: Workers, counts: _Counts
) -> BulkReport:
    """Read the source to its end, embed what is new, and make the result the manifest's."""
    spec, source = manifest.job, counts.source
    store = ShardStore(folder / SHARDS, spec.shard_format)
    known = list(_known(store, lookup))
    marks = Marks(max((shard.numbers.stop for shard in known), default=0))
    planner = Planner(lookup, [shard.numbers for shard in known], ShardLimits(spec.shard_rows, SHARD_CHARACTERS))
    with RowsWriter(folder, has_ids=source.has_ids) as rows:
        new = []
        for shard in workers.run(_planned(stream, planner, rows, marks, counts), store, spec.shard_format):
            new.append(shard)
            counts.embedded(shard.n)
        shards = sorted([*known, *new], key=lambda shard: shard.start)
        n_unused = sum(shard.n for shard in shards if shard.start < marks.n) - marks.count()
        kind = open_shard(store.folder / shards[0].name)
        result = Result(
            source={**source.described(), "sha256": planner.source_sha256},
            rows=counts.n_rows,
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
        n_embedded=counts.n_embedded,
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
    stream: Iterator[RowBlock], planner: Planner, rows: RowsWriter, marks: Marks, counts: _Counts
) -> Iterator[NewShard]:
    """The shards to embed, drawn from the source as they are asked for."""
    for block in stream:
        numbers, filled = planner.take(block.texts)
        rows.add(numbers, block.ids)
        marks.add(numbers)
        counts.read(len(block.texts), n_new=planner.n_new)
        yield from filled
    yield from planner.rest()


class _Counts:
    """Counts what is done, and reports it to whoever watches."""

    def __init__(self, source: Source, watch: Watch | None) -> None:
        self.source, self._watch = source, watch
        self._total = source.n_rows() if watch else None
        self.n_rows = self.n_embedded = self._n_new = 0

    def read(self, n: int, *, n_new: int) -> None:
        """So many rows more were read; among all so far are so many new texts."""
        self.n_rows += n
        self._n_new = n_new
        self._report()

    def embedded(self, n: int) -> None:
        """So many texts more are embedded and on the disk."""
        self.n_embedded += n
        self._report()

    def _report(self) -> None:
        if self._watch:
            self._watch(BulkState(self.n_rows, self._total, self._n_new, self.n_embedded))
