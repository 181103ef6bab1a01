"""Reading a shard: its keys, its vectors, or some of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from twinvec.bulk.keys import KEY_BYTES, Keys
from twinvec.bulk.shard_file import pyarrow
from twinvec.errors import InputError
from twinvec.types import Array, Ids

__all__ = ["ShardReader", "keys_in", "open_shard", "vectors_in"]


class ShardReader(Protocol):
    """An open shard. Tables are pyarrow's."""

    n: int
    width: int
    type: str  # of a vector's numbers
    n_cut: int
    longest: int

    def read(self, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """All rows, of these columns."""
        ...

    def take(self, places: Ids, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """Some rows in rising order, ``(m,)``, of these columns."""
        ...


class ParquetShard:
    """A shard of row groups, of which only those wanted are decoded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _readable(path):
            self._file = pyarrow(".parquet").ParquetFile(path, memory_map=True, page_checksum_verification=True)
            self.n: int = self._file.metadata.num_rows
            self.width, self.type = _kind(self._file.schema_arrow)
            self.n_cut, self.longest = _counts(self._file.schema_arrow)

    def read(self, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """All rows."""
        with _readable(self._path):
            return self._file.read(columns=list(columns), use_threads=False)

    def take(self, places: Ids, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """Some rows; the groups that they are in are decoded whole."""
        size = self._file.metadata.row_group(0).num_rows
        groups, which = np.unique(places // size, return_inverse=True)
        with _readable(self._path):
            table = self._file.read_row_groups(groups.tolist(), columns=list(columns), use_threads=False)
        return table.take(which * size + places % size)


class ArrowShard:
    """A shard that is mapped: nothing is read before it is used."""

    def __init__(self, path: Path) -> None:
        with _readable(path):
            self._table = pyarrow(".ipc").open_file(pyarrow().memory_map(str(path))).read_all()
            self.n: int = len(self._table)
            self.width, self.type = _kind(self._table.schema)
            self.n_cut, self.longest = _counts(self._table.schema)

    def read(self, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """All rows, not copied."""
        return self._table.select(list(columns))

    def take(self, places: Ids, columns: Sequence[str]) -> Any:  # noqa: ANN401
        """Some rows."""
        return self._table.select(list(columns)).take(places)


def open_shard(path: Path) -> ShardReader:
    """The shard in a file, by its ending."""
    return READERS[path.suffix](path)


def keys_in(table: Any) -> Keys:  # noqa: ANN401 - pyarrow's
    """The keys of a table's rows, ``(n,)``."""
    chunks = [chunk for chunk in table["key"].chunks if len(chunk)]
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=f"S{KEY_BYTES}")[chunk.offset : chunk.offset + len(chunk)]
        for chunk in chunks
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=f"S{KEY_BYTES}")


def vectors_in(table: Any) -> Array:  # noqa: ANN401 - pyarrow's
    """The vectors of a table's rows, ``(n, width)``; not copied where they are in one piece."""
    width = table.schema.field("vector").type.list_size
    parts = [chunk.flatten().to_numpy(zero_copy_only=True).reshape(-1, width) for chunk in table["vector"].chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _kind(schema: Any) -> tuple[int, str]:  # noqa: ANN401 - pyarrow's
    vector = schema.field("vector").type
    return vector.list_size, np.dtype(vector.value_type.to_pandas_dtype()).name


def _counts(schema: Any) -> tuple[int, int]:  # noqa: ANN401 - pyarrow's
    metadata = schema.metadata or {}
    return int(metadata.get(b"n_cut", 0)), int(metadata.get(b"longest", 0))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    arrow = pyarrow()
    try:
        yield
    except (arrow.ArrowException, OSError, KeyError, AttributeError) as error:  # the last two: other columns
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"The shard {path} is damaged or missing: {reason}.", hint="Run the job again: it is found and redone."
        ) from error


READERS: dict[str, type[ParquetShard] | type[ArrowShard]] = {".parquet": ParquetShard, ".arrow": ArrowShard}
