"""The settings, progress and report of a bulk job, and its ``manifest.json``."""

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
    """How a job runs. None keeps the folder's setting, or the default: Parquet shards of 16,384 texts.

    ``force`` starts over in a folder that has a job. ``max_memory_bytes`` limits the whole process. ``output`` is the
    stored number type, as in :func:`twinvec.quantize_vectors`.
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
    """The progress of a job: rows read out of ``total_rows`` (None: unknown), new texts in them, and texts stored."""

    n_rows: int
    total_rows: int | None
    n_new: int
    n_embedded: int

    @property
    def n_done(self) -> int:
        """Rows read whose text is already embedded."""
        return self.n_rows - (self.n_new - self.n_embedded)


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What a complete run did, and what the folder now holds.

    ``n_rows`` rows hold ``n_texts`` unique texts, of which this run embedded ``n_embedded``. ``n_unused`` texts of
    earlier runs no longer appear in any row. ``n_cut`` texts exceeded the model's limit, by up to ``longest`` tokens;
    ``n_unknown`` texts are in a script that the model has no words for. ``n_damaged`` shards were damaged and
    embedded again.
    """

    n_rows: int
    n_texts: int
    n_embedded: int
    n_unused: int
    n_damaged: int
    n_cut: int
    longest: int
    n_unknown: int

    @property
    def n_repeated(self) -> int:
        """Rows whose text appears in an earlier row."""
        return self.n_rows - self.n_texts


FORMAT = "twinvec-bulk-1"
MANIFEST = "manifest.json"
HINT = "Restore it, or start over with --force."

SHA256 = "[0-9a-f]{64}"
TYPES = "float64", "float32", "float16", "int8", "uint8"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The settings of a job, which every run in the same folder must share."""

    model: str
    model_sha256: str
    settings: Mapping[str, Any]
    shard_format: ShardFormat
    shard_rows: int
    versions: Mapping[str, str]  # at the start of the job; a run with other versions only warns


@dataclass(frozen=True, slots=True)
class Result:
    """A complete run: its source, its rows, and all shards. ``unused`` texts no longer appear in any row.

    A vector has ``width`` numbers of ``type``; binary vectors pack eight signs into one number.
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
    """A job and its last complete result."""

    job: JobSpec
    result: Result | None = None


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder, or None if there is none."""
    path = folder / MANIFEST
    try:
        content = parse_json(path.read_bytes(), source=str(path), hint=HINT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint=HINT) from error
    whole = JsonObject(content, path, InputError, HINT)
    if whole.text("format") != FORMAT:
        raise InputError(f"{path} has the format {whole.text('format')!r:.60}.", hint=f"This version reads {FORMAT}.")
    whole.only(("format", "job", "result"))
    job = _job(whole.inner("job"))
    return Manifest(job, None if whole.value("result") is None else _result(whole.inner("result")))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically: readers see the old one or the new one."""
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
    if (n := sum(shard.n for shard in result.shards)) != result.texts + result.unused:
        expected = f"{result.texts:,} texts and {result.unused:,} unused ones"
        raise InputError(f"{content.source}: the shards hold {n:,} texts, not {expected}.", hint=HINT)
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
        n_unknown=int(content.integer("n_unknown", 0, least=0, most=LARGEST_EXACT)),  # older manifests lack it
    )


def _count(content: JsonObject, key: str, least: int = 1) -> int:
    return int(content.integer(key, least=least, most=LARGEST_EXACT))


def differences(found: JobSpec, wanted: JobSpec) -> Iterator[str]:
    """Describe each setting in which a job differs from the one that a folder was started with.

    >>> one = JobSpec("mini", "ab", {"precision": "int8"}, "parquet", 16, {})
    >>> list(differences(one, JobSpec("mini", "ab", {"precision": "float32"}, "parquet", 16, {})))
    ["precision was 'int8', now 'float32'"]
    """
    if found.model_sha256 != wanted.model_sha256:
        old, new = (f"{each.model} ({each.model_sha256[:12]})" for each in (found, wanted))
        yield f"the model was {old}, now {new}"
    before, after = (
        {**each.settings, "shard format": each.shard_format, "rows per shard": each.shard_rows}
        for each in (found, wanted)
    )
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield f"{name} was {before.get(name)!r}, now {after.get(name)!r}"
