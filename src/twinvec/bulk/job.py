"""The bulk job: reads rows, writes shards and a manifest, and can be killed at any moment."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
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

__all__ = ["SHARDS", "Watch", "Workers", "embed_bulk"]


class Workers(Protocol):
    """Embeds and stores shards, drawing the next shard when a worker is free."""

    def shard_bytes(self, shard_rows: int) -> int:
        """The memory that a shard's vectors take in this process."""
        ...

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Yield every shard once it is on disk, in any order."""
        ...


class LocalWorkers:
    """Embeds in this process, one shard at a time."""

    def __init__(self, embedder: Embedder, output: OutputType = "float32") -> None:
        self._embedder, self._output = embedder, output

    def shard_bytes(self, shard_rows: int) -> int:
        """The memory that a shard's vectors take; loads the model to find its width."""
        return 4 * width_of(self._embedder) * shard_rows

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Yield every shard once it is on disk, in order. A kill loses one shard at most."""
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
    """Refuse a folder that holds anything but a job, before writing to it.

    ``force`` removes the job, so it also refuses a folder that holds a job and other files.
    """
    check_path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder.", hint="Choose a folder.")
    if force:
        check_ours(folder, KIND)
    if not folder.exists() or is_marked(folder, KIND):
        return
    foreign = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if foreign:
        raise InputError(
            f"{folder} is not the folder of a bulk job: it holds {foreign[0]!r}.", hint="Choose a new or empty folder."
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create and lock the folder; the operating system releases the lock when the process ends for any reason."""
    try:
        mark(folder, KIND)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise InputError(f"Cannot write to the folder {folder}: {error.strerror or error}.") from error
    with lock:
        if not try_lock(lock.fileno()):
            raise InputError(
                f"Another process is writing to {folder}.", hint="Wait for it, or stop it; its work is kept."
            )
        yield


def begin(folder: Path, wanted: JobSpec) -> Manifest:
    """Return the manifest to continue from: a new one in an empty folder. Refuses the folder of another job."""
    remove_partial_markers(folder)
    for path in folder.glob(".*.partial*"):  # left by a killed process
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
    _warn_of_versions(folder, manifest.job.versions, wanted.versions)
    return manifest


def clear(folder: Path) -> None:
    """Remove a job's files to start over. Refuses a folder that holds anything else."""
    check_ours(folder, KIND)
    remove_ours(folder, KIND, keep=[LOCK])


def _warn_of_versions(folder: Path, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    changed = [
        f"{name} {found.get(name, 'none')} to {wanted.get(name, 'none')}"
        for name in {**found, **wanted}
        if found.get(name) != wanted.get(name)
    ]
    if changed:
        message = "%s was started with other versions (%s); new vectors may differ from old ones in their last digits."
        logger.warning(message, folder, ", ".join(changed))


SHARD_CHARACTERS = 1 << 25  # so that long texts do not fill the memory

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
    """Embed the texts of a source into a folder of shards. Texts that the folder already has are not embedded again.

    Args:
        source: A file name, or a :class:`FileSource` that names the columns.
        model: The name or folder of a model, an encoder, or any other embedder.
        workers: Where to embed: by default in this process, or :class:`RayWorkers`.
        watch: Called after every block of rows and every shard.
    """
    pyarrow()  # before any work
    rows = FileSource(str(source)) if isinstance(source, (str, PathLike)) else source
    target, chosen, embedder = Path(folder), settings or BulkSettings(), as_embedder(model)
    crew = workers or LocalWorkers(embedder, chosen.output)
    check_folder(target, force=chosen.force)
    stream = _started(blocks(rows), rows)
    wanted = _spec(target, embedder, chosen)
    shard_bytes = crew.shard_bytes(wanted.shard_rows) if chosen.max_memory_bytes else 0
    lookup = Lookup(target, lookup_bytes(chosen.max_memory_bytes, used=used_bytes(), shard=shard_bytes))
    with locked(target):
        if chosen.force:
            clear(target)
        return _run(target, stream, begin(target, wanted), lookup, crew, _Counts(rows, watch))


def _started(stream: Iterator[RowBlock], source: Source) -> Iterator[RowBlock]:
    """The same blocks, with the first read now: a wrong file fails before anything is written."""
    for first in stream:
        return chain([first], stream)
    raise InputError(f"{source.describe().get('name')} has no rows.", hint="Use a file with at least one row.")


def _spec(folder: Path, embedder: Embedder, settings: BulkSettings) -> JobSpec:
    """The specification of this run; shard settings that are None stay as the job was started."""
    found = None if settings.force else read_manifest(folder)
    name, content = embedder.name, embedder.identity
    if isinstance(embedder, ModelEmbedder):  # its settings are stored separately
        name, content = embedder.model, embedder.content
    return JobSpec(
        model=name,
        model_sha256=content,
        settings={**embedder.settings, "output": settings.output},
        shard_format=settings.shard_format or (found.job.shard_format if found else "parquet"),
        shard_rows=settings.shard_rows or (found.job.shard_rows if found else 16_384),
        versions=engine_versions(),
    )


def _run(
    folder: Path, stream: Iterator[RowBlock], manifest: Manifest, lookup: Lookup, workers: Workers, counts: _Counts
) -> BulkReport:
    """Read the whole source, embed new texts, and write the result to the manifest."""
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
            source={**source.describe(), "sha256": planner.source_sha256},
            rows=counts.n_rows,
            texts=sum(shard.n for shard in shards) - n_unused,
            unused=n_unused,
            width=kind.width,
            type=kind.type,
            rows_file=rows.finish(),
            shards=tuple(shards),
        )
    write_manifest(folder, replace(manifest, result=result))
    for path in folder.glob("rows-*.parquet"):  # of earlier results
        if path.name != result.rows_file.name and ROWS_NAME.fullmatch(path.name):
            path.unlink()
    return BulkReport(
        n_rows=result.rows,
        n_texts=result.texts,
        n_embedded=counts.n_embedded,
        n_unused=n_unused,
        n_damaged=store.n_damaged,
        n_cut=sum(shard.n_cut for shard in shards),
        longest=max((shard.longest for shard in shards), default=0),
        n_unknown=sum(shard.n_unknown for shard in shards),
    )


def _known(store: ShardStore, lookup: Lookup) -> Iterator[StoredShard]:
    """Yield the intact shards, and add their texts to the lookup."""
    for shard, keys in store.checked():
        lookup.add(keys, np.arange(shard.start, shard.numbers.stop))
        yield shard


def _planned(
    stream: Iterator[RowBlock], planner: Planner, rows: RowsWriter, marks: Marks, counts: _Counts
) -> Iterator[NewShard]:
    """Yield the shards to embed, reading the source as needed."""
    for block in stream:
        numbers, filled = planner.take(block.texts)
        rows.add(numbers, block.ids)
        marks.add(numbers)
        counts.read(len(block.texts), n_new=planner.n_new)
        yield from filled
    yield from planner.rest()


class _Counts:
    """Counts progress and reports it to ``watch``."""

    def __init__(self, source: Source, watch: Watch | None) -> None:
        self.source, self._watch = source, watch
        self._total = source.n_rows() if watch else None
        self.n_rows = self.n_embedded = self._n_new = 0

    def read(self, n: int, *, n_new: int) -> None:
        """Count ``n`` more rows read; ``n_new`` is the total of new texts so far."""
        self.n_rows += n
        self._n_new = n_new
        self._report()

    def embedded(self, n: int) -> None:
        """Count ``n`` more texts embedded and on disk."""
        self.n_embedded += n
        self._report()

    def _report(self) -> None:
        if self._watch:
            self._watch(BulkState(self.n_rows, self._total, self._n_new, self.n_embedded))
