"""The settings, state and report of a bulk job, and what it stores in ``manifest.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from twinvec.bulk.rows import ROWS_NAME, RowsFile
from twinvec.bulk.shards import ENDINGS, SHARD_NAME, StoredShard
from twinvec.choices import OutputType, ShardFormat
from twinvec.errors import InputError, check_at_least, check_name
from twinvec.files import new_file
from twinvec.json_checks import LARGEST_EXACT, JsonObject, parse_json
from twinvec.vectors import check_output

__all__ = [
    "MANIFEST",
    "BulkReport",
    "BulkSettings",
    "BulkState",
    "JobSpec",
    "Manifest",
    "Result",
    "differences",
    "read_manifest",
    "write_manifest",
]


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """How a job runs. None leaves a choice to the folder, or to the default: Parquet shards of 16,384 texts.

    ``force`` starts over in a folder that has a job. ``max_memory_bytes`` bounds the whole process. ``output`` is the
    type of number that is stored, as in :func:`twinvec.quantize_vectors`.
    """

    shard_rows: int | None = None
    shard_format: ShardFormat | None = None
    max_memory_bytes: int | None = None
    force: bool = False
    output: OutputType = "float32"

    def __post_init__(self) -> None:
        check_output(self.output)
        check_at_least(1, shard_rows=self.shard_rows, max_memory_bytes=self.max_memory_bytes)
        if self.shard_format is not None:
            check_name("shard format", self.shard_format, ENDINGS)


@dataclass(frozen=True, slots=True)
class BulkState:
    """How far a job is: rows read of ``total_rows`` (None: not known), new texts in them, and texts stored by now."""

    n_rows: int
    total_rows: int | None
    n_new: int
    n_embedded: int

    @property
    def n_done(self) -> int:
        """Rows that are read and not waiting for their text to be embedded."""
        return self.n_rows - (self.n_new - self.n_embedded)


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What a complete run did, and what the folder now holds.

    ``n_texts`` different texts stand in ``n_rows`` rows; ``n_embedded`` of them were embedded by this run. ``n_unused``
    texts of earlier runs are in no row any more. ``n_cut`` texts were longer than the model reads, by up to ``longest``
    tokens. ``n_damaged`` shards were found damaged and redone.
    """

    n_rows: int
    n_texts: int
    n_embedded: int
    n_unused: int
    n_damaged: int
    n_cut: int
    longest: int

    @property
    def n_repeated(self) -> int:
        """Rows whose text stands in a row before."""
        return self.n_rows - self.n_texts


FORMAT = "twinvec-bulk-1"
MANIFEST = "manifest.json"
HINT = "Restore it, or start over with --force."

SHA256 = "[0-9a-f]{64}"
TYPES = "float64", "float32", "float16", "int8", "uint8"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What must stay the same as long as a folder is used."""

    model: str
    model_sha256: str
    settings: Mapping[str, Any]
    shard_format: ShardFormat
    shard_rows: int
    versions: Mapping[str, str]  # when the job began; another one is said, not refused


@dataclass(frozen=True, slots=True)
class Result:
    """A complete run: its source, the rows, and every shard. ``unused`` texts are in no row any more.

    A vector has ``width`` numbers of ``type``; binary ones hold eight signs each.
    """

    source: Mapping[str, Any]
    rows: int
    texts: int
    unused: int
    width: int
    type: str
    rows_file: RowsFile
    shards: tuple[StoredShard, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A job, and its last complete result."""

    job: JobSpec
    result: Result | None = None


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if it has none."""
    path = folder / MANIFEST
    try:
        content = parse_json(path.read_bytes(), source=str(path), hint=HINT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint=HINT) from error
    whole = JsonObject(content, path, InputError, HINT)
    found = whole.text("format")
    if found != FORMAT:
        raise InputError(f"{path} has the format {found!r:.60}.", hint=f"This version reads {FORMAT}.")
    whole.only(("format", "job", "result"))
    job = _job(whole.inner("job"))
    return Manifest(job, None if whole.value("result") is None else _result(whole.inner("result")))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest: readers see the old one or the new one."""
    content = {"format": FORMAT, **asdict(manifest)}
    with new_file(folder / MANIFEST, replace=True) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _job(job: JsonObject) -> JobSpec:
    job.only([each.name for each in fields(JobSpec)])
    versions = job.inner("versions")
    return JobSpec(
        model=job.text("model"),
        model_sha256=job.text("model_sha256"),
        settings=job.inner("settings").content,
        shard_format=job.word("shard_format", choices=ENDINGS),
        shard_rows=_count(job, "shard_rows"),
        versions={name: versions.text(name) for name in versions.content},
    )


def _result(content: JsonObject) -> Result:
    content.only([each.name for each in fields(Result)])
    result = Result(
        source=content.inner("source").content,
        rows=_count(content, "rows"),
        texts=_count(content, "texts"),
        unused=_count(content, "unused", least=0),
        width=_count(content, "width"),
        type=content.word("type", choices=TYPES),
        rows_file=_rows_file(content.inner("rows_file")),
        shards=tuple(_shard(each) for each in content.objects("shards")),
    )
    end = 0
    for shard in result.shards:
        if shard.start < end or not shard.name.startswith(f"{shard.start:012d}-{shard.sha256[:16]}."):
            raise InputError(f"{content.source}: the shard {shard.name} cannot start at {shard.start}.", hint=HINT)
        end = shard.numbers.stop
    if sum(shard.n for shard in result.shards) != result.texts + result.unused:
        problem = f"the shards do not add up to {result.texts:,} texts and {result.unused:,} unused ones"
        raise InputError(f"{content.source}: {problem}.", hint=HINT)
    return result


def _rows_file(content: JsonObject) -> RowsFile:
    content.only([each.name for each in fields(RowsFile)])
    name = content.text("name", pattern=ROWS_NAME.pattern)
    return RowsFile(name, _count(content, "size_bytes"), content.text("sha256", pattern=SHA256))


def _shard(content: JsonObject) -> StoredShard:
    content.only([each.name for each in fields(StoredShard)])
    return StoredShard(
        name=content.text("name", pattern=SHARD_NAME.pattern),
        start=_count(content, "start", least=0),
        n=_count(content, "n"),
        size_bytes=_count(content, "size_bytes"),
        sha256=content.text("sha256", pattern=SHA256),
        n_cut=_count(content, "n_cut", least=0),
        longest=_count(content, "longest", least=0),
    )


def _count(content: JsonObject, key: str, least: int = 1) -> int:
    return int(content.integer(key, least=least, most=LARGEST_EXACT))


def differences(found: JobSpec, wanted: JobSpec) -> Iterator[str]:
    """What of a job is not what a folder was started with, in words.

    >>> one = JobSpec("mini", "ab", {"precision": "int8"}, "parquet", 16, {})
    >>> list(differences(one, JobSpec("mini", "ab", {"precision": "float32"}, "parquet", 16, {})))
    ["precision is 'int8' there and 'float32' here"]
    """
    if found.model_sha256 != wanted.model_sha256:
        there, here = (f"{each.model} ({each.model_sha256[:12]})" for each in (found, wanted))
        yield f"the model is {there} there and {here} here"
    before = {**found.settings, "shard format": found.shard_format, "rows of a shard": found.shard_rows}
    after = {**wanted.settings, "shard format": wanted.shard_format, "rows of a shard": wanted.shard_rows}
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield f"{name} is {before.get(name)!r} there and {after.get(name)!r} here"
