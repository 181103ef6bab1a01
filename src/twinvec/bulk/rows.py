"""The rows of the source in one Parquet file: for each row the number of its text, and its id if it has one.

Every run reads the source from its start and writes this file again. The file gets its name, which contains its
checksum, only when it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import fsync
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from twinvec.bulk.shards import pyarrow
from twinvec.errors import InputError
from twinvec.files import digest_files, open_partial, sync_folder
from twinvec.types import Ids

__all__ = ["ROWS_NAME", "RowsFile", "RowsWriter", "read_rows"]

ROWS_PER_GROUP = 1 << 16
ROWS_NAME = re.compile(r"rows-[0-9a-f]{16}\.parquet")


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A complete rows file."""

    name: str
    size_bytes: int
    sha256: str


class RowsWriter:
    """Context manager that collects rows; ``finish`` names the file. Without ``finish``, no file remains."""

    def __init__(self, folder: Path, *, has_ids: bool) -> None:
        self._folder, self._has_ids = folder, has_ids
        self._schema = _schema(has_ids=has_ids)
        self._numbers: list[Ids] = []
        self._ids: list[str] = []
        self._n_waiting = 0
        try:
            self._file: IO[bytes] = open_partial(folder / "rows.parquet")
        except OSError as error:
            raise self._refused(error) from error
        self._writer: Any = pyarrow(".parquet").ParquetWriter(
            self._file, self._schema, compression="zstd", write_page_checksum=True
        )

    def __enter__(self) -> RowsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for opened in (self._writer, self._file):
            with suppress(OSError):  # after finish() there is nothing left to write
                opened.close()
        Path(self._file.name).unlink(missing_ok=True)

    def add(self, numbers: Ids, ids: Sequence[str]) -> None:
        """Add rows: the numbers of their texts, ``(n,)``, and their ids, if rows have ids."""
        self._numbers.append(numbers)
        self._ids.extend(ids)
        self._n_waiting += len(numbers)
        while self._n_waiting >= ROWS_PER_GROUP:
            self._write(ROWS_PER_GROUP)

    def finish(self) -> RowsFile:
        """Write the remaining rows, and give the file its name."""
        partial = Path(self._file.name)
        if self._n_waiting:
            self._write(self._n_waiting)
        try:
            self._writer.close()
            self._file.flush()
            fsync(self._file.fileno())
            digest = digest_files([partial])
            name = f"rows-{digest[:16]}.parquet"
            size_bytes = partial.stat().st_size
            partial.rename(self._folder / name)
            sync_folder(self._folder)
        except OSError as error:
            raise self._refused(error) from error
        return RowsFile(name, size_bytes, digest)

    def _write(self, n: int) -> None:
        arrow = pyarrow()
        numbers = np.concatenate(self._numbers)
        columns = [arrow.array(numbers[:n])]
        if self._has_ids:
            columns.append(arrow.array(self._ids[:n], arrow.string()))
        try:
            self._writer.write_table(arrow.Table.from_arrays(columns, schema=self._schema), row_group_size=n)
        except OSError as error:
            raise self._refused(error) from error
        self._numbers, self._ids = [numbers[n:]], self._ids[n:]
        self._n_waiting -= n

    def _refused(self, error: OSError) -> InputError:
        return InputError(
            f"Cannot write the rows to {self._folder}: {error.strerror or error}.",
            hint="All shards are safe. Free some disk space, then run the same command again to continue.",
        )


def read_rows(path: Path, n: int, rows_per_batch: int) -> Iterator[tuple[Ids, list[str] | None]]:
    """Yield the text numbers ``(m,)`` and ids of the ``n`` rows in batches; ids are None if rows have none."""
    arrow, parquet = pyarrow(), pyarrow(".parquet")
    if not path.is_file():
        raise InputError(
            f"The rows file {path} is missing.", hint="If another run has finished meanwhile, open the folder again."
        )
    n_read = 0
    try:
        with parquet.ParquetFile(path, memory_map=True, page_checksum_verification=True) as file:
            has_ids = "id" in file.schema_arrow.names
            if not file.schema_arrow.equals(_schema(has_ids=has_ids)):
                raise _damaged(path, f"its columns are {', '.join(file.schema_arrow.names)}")
            for batch in file.iter_batches(batch_size=rows_per_batch, use_threads=False):
                n_read += len(batch)
                yield batch.column("number").to_numpy(), batch.column("id").to_pylist() if has_ids else None
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error).splitlines()[0].rstrip(".")) from error
    if n_read != n:
        raise _damaged(path, f"it has {n_read:,} of {n:,} rows")


def _schema(*, has_ids: bool) -> Any:  # noqa: ANN401 - pyarrow's
    arrow = pyarrow()
    fields = [arrow.field("number", arrow.int64(), nullable=False)]
    if has_ids:
        fields.append(arrow.field("id", arrow.string(), nullable=False))
    return arrow.schema(fields)


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"Cannot read the rows file {path}: {reason}.", hint="Run the job again to rebuild it.")
