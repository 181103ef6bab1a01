"""What a bulk job is told, reports, and stores in ``manifest.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twinvec.bulk.rows import ROWS_NAME, RowsFile
from twinvec.bulk.shards import ENDINGS, SHARD_NAME, StoredShard
from twinvec.choices import OutputType, ShardFormat
from twinvec.errors import InputError, UnknownNameError
from twinvec.files import new_file
from twinvec.json_checks import Check, check_object, is_count, is_map, is_positive, is_text, matching, one_of
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
    """How a job runs. None leaves a choice to the folder, or to the usual: Parquet shards of 16,384 texts.

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
        if self.shard_rows is not None and self.shard_rows < 1:
            raise InputError(f"shard_rows must be at least 1, got {self.shard_rows}.")
        if self.shard_format is not None and self.shard_format not in ENDINGS:
            raise UnknownNameError("shard format", self.shard_format, ENDINGS)
        if self.max_memory_bytes is not None and self.max_memory_bytes < 1:
            raise InputError(f"max_memory_bytes must be at least 1, got {self.max_memory_bytes}.")


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

SHA256 = matching("[0-9a-f]{64}")
WHOLE: dict[str, Check] = {"format": one_of(FORMAT), "job": is_map, "result": lambda value: True}
JOB: dict[str, Check] = {
    "model": is_text,
    "model_sha256": is_text,
    "settings": is_map,
    "shard_format": one_of(*ENDINGS),
    "shard_rows": is_positive,
    "versions": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
}
RESULT: dict[str, Check] = {
    "source": is_map,
    "rows": is_positive,
    "texts": is_positive,
    "unused": is_count,
    "width": is_positive,
    "type": one_of("float64", "float32", "float16", "int8", "uint8"),
    "rows_file": is_map,
    "shards": lambda value: isinstance(value, list) and bool(value),
}
ROWS_FILE: dict[str, Check] = {"name": matching(ROWS_NAME.pattern), "size_bytes": is_positive, "sha256": SHA256}
SHARD: dict[str, Check] = {
    "name": matching(SHARD_NAME.pattern),
    "start": is_count,
    "n": is_positive,
    "size_bytes": is_positive,
    "sha256": SHA256,
    "n_cut": is_count,
    "longest": is_count,
}


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
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no manifest of a bulk job: {error!r:.100}.", hint=HINT) from error
    found = content.get("format") if isinstance(content, dict) else None
    if isinstance(found, str) and found != FORMAT:
        raise InputError(f"{path} has the format {found!r:.60}.", hint=f"This version reads {FORMAT}.")
    try:
        whole = check_object(content, WHOLE, "it")
        job = JobSpec(**check_object(whole["job"], JOB, "its 'job'"))
        return Manifest(job, None if whole["result"] is None else _result(whole["result"]))
    except InputError as error:
        raise InputError(f"{path} is no manifest of a bulk job: {error.problem}", hint=HINT) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest: readers see the old one or the new one."""
    content = {"format": FORMAT, **asdict(manifest)}
    with new_file(folder / MANIFEST, replace=True) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _result(content: object) -> Result:
    told = dict(check_object(content, RESULT, "its 'result'"))
    rows_file = RowsFile(**check_object(told.pop("rows_file"), ROWS_FILE, "its 'rows_file'"))
    shards = tuple(StoredShard(**check_object(each, SHARD, "a shard")) for each in told.pop("shards"))
    result = Result(rows_file=rows_file, shards=shards, **told)
    end = 0
    for shard in shards:
        if shard.start < end or not shard.name.startswith(f"{shard.start:012d}-{shard.sha256[:16]}."):
            raise InputError(f"the shard {shard.name} starts at {shard.start}, in vain.")
        end = shard.numbers.stop
    if sum(shard.n for shard in shards) != result.texts + result.unused:
        raise InputError(f"its shards do not add up to {result.texts:,} texts and {result.unused:,} unused ones.")
    return result


def differences(found: JobSpec, wanted: JobSpec) -> Iterator[str]:
    """What of a job is not what a folder was begun with, in words.

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
