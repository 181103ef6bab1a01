"""Shards: Parquet or Arrow files of keys, texts and vectors, each with its checksum in its name."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from twinvec.bulk.plan import KEY_BYTES, Keys, NewShard
from twinvec.choices import OutputType, ShardFormat
from twinvec.embedder import Embedder, embed_block
from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.files import digest_files, new_file
from twinvec.types import Array, Ids
from twinvec.vectors import checked_vectors, quantize_vectors

__all__ = [
    "ENDINGS",
    "REBUILD",
    "SHARD_NAME",
    "ShardFile",
    "ShardReader",
    "ShardStore",
    "StoredShard",
    "embedded_shard",
    "open_shard",
    "pyarrow",
    "vectors_in",
]

logger = logging.getLogger(__name__)

COUNTS = "n_cut", "longest", "n_unknown"  # of the texts of a shard, in its metadata
COLUMNS = "number", "key", "text", "vector"
ROWS_PER_GROUP = 2048  # rows decoded to read one row of a Parquet shard
REBUILD = "Run the job again: it finds and rebuilds the shard."


@dataclass(frozen=True, slots=True)
class ShardFile:
    """The content of a shard's file, not written yet."""

    start: int
    n: int
    n_cut: int
    longest: int
    n_unknown: int
    content: bytes

    @property
    def sha256(self) -> str:
        """The SHA-256 digest of the content."""
        return hashlib.sha256(self.content).hexdigest()


def embedded_shard(shard: NewShard, embedder: Embedder, output: OutputType, format: ShardFormat) -> ShardFile:
    """Embed the texts of a shard, and return the content of its file."""
    block = embed_block(embedder, shard.texts)
    checked = checked_vectors(block.vectors, shard.texts, width=embedder.width, source=embedder.name)
    counts = block.n_cut, block.longest, block.n_unknown
    metadata = {name: str(count) for name, count in zip(COUNTS, counts, strict=True)}
    table = _table(shard, quantize_vectors(checked, output), metadata=metadata)
    return ShardFile(shard.start, len(shard.texts), *counts, WRITERS[format](table))


def pyarrow(part: str = "") -> ModuleType:
    """The package pyarrow, or a submodule such as ``.parquet``."""
    return require(f"pyarrow{part}", extra="tables", feature="Bulk embedding")


def _table(shard: NewShard, vectors: Array, *, metadata: dict[str, str]) -> Any:  # noqa: ANN401 - pyarrow's
    arrow = pyarrow()
    n, width = vectors.shape
    element = arrow.field("element", arrow.from_numpy_dtype(vectors.dtype), nullable=False)
    kinds = arrow.int64(), arrow.binary(KEY_BYTES), arrow.string(), arrow.list_(element, width)
    fields = [arrow.field(name, kind, nullable=False) for name, kind in zip(COLUMNS, kinds, strict=True)]
    values = arrow.array(np.ascontiguousarray(vectors).ravel())
    columns = [
        arrow.array(np.arange(shard.start, shard.start + n)),
        arrow.FixedSizeBinaryArray.from_buffers(kinds[1], n, [None, arrow.py_buffer(shard.keys.tobytes())]),
        arrow.array(shard.texts, arrow.string()),
        arrow.FixedSizeListArray.from_arrays(values, type=kinds[3]),
    ]
    return arrow.Table.from_arrays(columns, schema=arrow.schema(fields, metadata=metadata))


def _parquet(table: Any) -> bytes:  # noqa: ANN401 - pyarrow's
    sink = pyarrow().BufferOutputStream()
    pyarrow(".parquet").write_table(
        table,
        sink,
        row_group_size=ROWS_PER_GROUP,
        compression={"number": "ZSTD", "text": "ZSTD"},  # keys and vectors do not compress
        use_dictionary=False,
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def _arrow(table: Any) -> bytes:  # noqa: ANN401 - pyarrow's
    sink = pyarrow().BufferOutputStream()
    with pyarrow(".ipc").new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(len(table), 1))
    return bytes(sink.getvalue())


WRITERS: dict[ShardFormat, Callable[[Any], bytes]] = {"parquet": _parquet, "arrow": _arrow}
ENDINGS: dict[ShardFormat, str] = {"parquet": ".parquet", "arrow": ".arrow"}


class ParquetShard:
    """An open Parquet shard, which returns pyarrow tables; only the needed row groups are decoded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _readable(path):
            self._file = pyarrow(".parquet").ParquetFile(path, memory_map=True, page_checksum_verification=True)
            self.n: int = self._file.metadata.num_rows
            self.width, self.type, self.counts = _parse_schema(self._file.schema_arrow)

    def read(self, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """All rows of these columns."""
        with _readable(self._path):
            return self._file.read(columns=list(columns), use_threads=False)

    def take(self, rows: Ids, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """Some rows of these columns, ``(m,)`` and sorted; their row groups are decoded as a whole."""
        size = self._file.metadata.row_group(0).num_rows
        groups, which = np.unique(rows // size, return_inverse=True)
        with _readable(self._path):
            table = self._file.read_row_groups(groups.tolist(), columns=list(columns), use_threads=False)
        return table.take(which * size + rows % size)


class ArrowShard:
    """A memory-mapped Arrow shard, which returns pyarrow tables; nothing is read before it is used."""

    def __init__(self, path: Path) -> None:
        with _readable(path):
            self._table = pyarrow(".ipc").open_file(pyarrow().memory_map(str(path))).read_all()
            self.n: int = len(self._table)
            self.width, self.type, self.counts = _parse_schema(self._table.schema)

    def read(self, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """All rows of these columns, not copied."""
        return self._table.select(list(columns))

    def take(self, rows: Ids, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """Some rows of these columns, ``(m,)``."""
        return self._table.select(list(columns)).take(rows)


ShardReader: TypeAlias = ParquetShard | ArrowShard
READERS: dict[str, type[ShardReader]] = {".parquet": ParquetShard, ".arrow": ArrowShard}


def open_shard(path: Path) -> ShardReader:
    """Open a shard; the file extension decides its format."""
    return READERS[path.suffix](path)


def keys_in(table: Any) -> Keys:  # noqa: ANN401 - pyarrow's
    """The keys of a table's rows, ``(n,)``."""
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=f"S{KEY_BYTES}")[chunk.offset : chunk.offset + len(chunk)]
        for chunk in table["key"].chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=f"S{KEY_BYTES}")


def vectors_in(table: Any) -> Array:  # noqa: ANN401 - pyarrow's
    """The vectors of a table's rows, ``(n, width)``; not copied if they are in one chunk."""
    width = table.schema.field("vector").type.list_size
    parts = [chunk.flatten().to_numpy(zero_copy_only=True).reshape(-1, width) for chunk in table["vector"].chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _parse_schema(schema: Any) -> tuple[int, str, tuple[int, ...]]:  # noqa: ANN401 - pyarrow's
    """The width and number type of the vectors, and ``COUNTS``."""
    vector, metadata = schema.field("vector").type, schema.metadata or {}
    number_type = np.dtype(vector.value_type.to_pandas_dtype()).name
    return vector.list_size, number_type, tuple(int(metadata.get(name.encode(), 0)) for name in COUNTS)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    arrow = pyarrow()
    try:
        yield
    except (arrow.ArrowException, OSError, KeyError, AttributeError) as error:  # the last two: other columns
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"The shard {path} is damaged or missing: {reason}.", hint=REBUILD) from error


SHARD_NAME = re.compile(r"(\d{12})-([0-9a-f]{16})\.(?:parquet|arrow)")
SHARD_PARTIAL = re.compile(rf"\.{SHARD_NAME.pattern}\.partial.*")
SAFE = "All earlier shards are safe. Free some disk space, then run the same command again to continue."


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard on disk: its texts have the numbers ``start`` to ``start + n - 1``."""

    name: str
    start: int
    n: int
    size_bytes: int
    sha256: str
    n_cut: int
    longest: int
    n_unknown: int

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
        """Write a shard: to a temporary file, synced, then renamed."""
        digest = file.sha256
        name = f"{file.start:012d}-{digest[:16]}{ENDINGS[self._format]}"
        try:
            with new_file(self.folder / name, replace=True) as stream:
                stream.write(file.content)
        except InputError as error:
            raise InputError(error.problem, hint=SAFE) from error
        counts = file.n_cut, file.longest, file.n_unknown
        return StoredShard(name, file.start, file.n, len(file.content), digest, *counts)

    def checked(self) -> Iterator[tuple[StoredShard, Keys]]:
        """Yield every intact shard with its keys, by its first number. Damaged shards are removed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        end = 0
        for path in sorted(self.folder.iterdir()):
            found = _checked(path, least=end)
            if found is None:
                self._remove(path)
            else:
                end = found[0].numbers.stop
                yield found

    def _remove(self, path: Path) -> None:
        if SHARD_NAME.fullmatch(path.name):
            self.n_damaged += 1
            logger.warning("%s is damaged: removed it; its texts will be embedded again.", path)
            path.unlink()
        elif SHARD_PARTIAL.fullmatch(path.name):  # left by a killed process
            path.unlink()


def _checked(path: Path, *, least: int) -> tuple[StoredShard, Keys] | None:
    """The shard in a file and its keys; None if its checksum, numbers or content are wrong."""
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
    size_bytes = path.stat().st_size
    return StoredShard(path.name, start, reader.n, size_bytes, digest, *reader.counts), keys
