"""What a folder of vectors holds, and of what: ``manifest.json``, replaced as a whole.

Its first half, the job, is written when the job begins and stays: the model by content, the settings that decide
vectors, the shape of shards. The second, the result, is written when a run is complete, and replaced by the next that
is. It holds no time, machine or process, so the same job gives the same bytes wherever it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twinvec.bulk.rows import RowsFile
from twinvec.bulk.shard_file import ShardFormat
from twinvec.bulk.store import StoredShard
from twinvec.errors import InputError
from twinvec.tables import new_file

__all__ = ["MANIFEST", "JobSpec", "Manifest", "Result", "differences", "read_manifest", "write_manifest"]

FORMAT = "twinvec-bulk-1"
MANIFEST = "manifest.json"
FILE_NAME = re.compile(r"[\w-]+\.(?:parquet|arrow)")  # without a folder: a job's files are all its own


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
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise InputError(f"{path} has the format {content['format']!r}.", hint=f"This version reads {FORMAT}.")
        return Manifest(JobSpec(**content["job"]), _result(content["result"]))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is no manifest of a bulk job: {error!r:.100}.", hint="Restore it, or start over with --force."
        ) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest: readers see the old one or the new one."""
    content = {"format": FORMAT, **asdict(manifest)}
    with new_file(folder / MANIFEST, replace=True) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _result(content: dict[str, Any] | None) -> Result | None:
    if content is None:
        return None
    shards = tuple(StoredShard(**shard) for shard in content.pop("shards"))
    rows_file = RowsFile(**content.pop("rows_file"))
    for name in (rows_file.name, *(shard.name for shard in shards)):
        if not FILE_NAME.fullmatch(name):
            raise ValueError(f"it names the file {name!r:.60}, which is not one of its folder")
    return Result(rows_file=rows_file, shards=shards, **content)


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
