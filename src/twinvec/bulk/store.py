"""The shards of a job: a folder of files that are whole or not there, each with its checksum in its name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twinvec.bulk.keys import Keys
from twinvec.bulk.shard_file import ENDINGS, ShardFile, ShardFormat
from twinvec.bulk.shard_reading import ShardReader, keys_in, open_shard
from twinvec.errors import InputError
from twinvec.files import digest_files
from twinvec.tables import new_file

__all__ = ["SHARD_NAME", "ShardStore", "StoredShard"]

logger = logging.getLogger(__name__)

SHARD_NAME = re.compile(r"(\d{12})-([0-9a-f]{16})\.(?:parquet|arrow)")
SHARD_PARTIAL = re.compile(rf"\.{SHARD_NAME.pattern}\.partial.*")
SAFE = "All shards before it are safe: make room, and run the same command again to go on."


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard on the disk: its texts have the numbers ``start`` to ``start + n - 1``."""

    name: str
    start: int
    n: int
    size_bytes: int
    sha256: str
    n_cut: int
    longest: int

    @property
    def numbers(self) -> range:
        """The numbers of its texts."""
        return range(self.start, self.start + self.n)


class ShardStore:
    """A folder of shards in one format."""

    def __init__(self, folder: Path, format: ShardFormat) -> None:
        self.folder, self._format = folder, format
        self.n_damaged = 0

    def put(self, file: ShardFile) -> StoredShard:
        """Write a shard: under another name, synced, then renamed."""
        digest = file.sha256
        name = f"{file.start:012d}-{digest[:16]}{ENDINGS[self._format]}"
        try:
            with new_file(self.folder / name, replace=True) as stream:
                stream.write(file.content)
        except InputError as error:
            raise InputError(error.problem, hint=SAFE) from error
        return StoredShard(name, file.start, file.n, len(file.content), digest, file.n_cut, file.longest)

    def checked(self) -> Iterator[tuple[StoredShard, Keys]]:
        """Every shard that is whole, by its first number, with its keys. Damaged ones are removed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        end = 0
        for path in sorted(self.folder.iterdir()):
            found = _checked(path, least=end)
            if found is None:
                self._drop(path)
            else:
                end = found[0].numbers.stop
                yield found

    def _drop(self, path: Path) -> None:
        if SHARD_NAME.fullmatch(path.name):
            self.n_damaged += 1
            logger.warning("%s is damaged; it is removed, and its texts are embedded again.", path)
            path.unlink()
        elif SHARD_PARTIAL.fullmatch(path.name):  # what a process that was killed left
            path.unlink()


def _checked(path: Path, *, least: int) -> tuple[StoredShard, Keys] | None:
    """The shard in a file and its keys; None if its checksum, its numbers or its content are not as they should be."""
    match = SHARD_NAME.fullmatch(path.name)
    if not match:
        return None
    digest, start = digest_files([path]), int(match[1])
    if not digest.startswith(match[2]) or start < least:
        return None
    try:
        reader = open_shard(path)
        keys = keys_in(reader.read(["key"]))
    except InputError:
        return None
    return _stored(path, start, reader, sha256=digest), keys


def _stored(path: Path, start: int, reader: ShardReader, *, sha256: str) -> StoredShard:
    return StoredShard(path.name, start, reader.n, path.stat().st_size, sha256, reader.n_cut, reader.longest)
