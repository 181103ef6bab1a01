"""The source of the rows: a file of any size, read as a stream in blocks of limited size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from twinvec.bulk.shards import pyarrow
from twinvec.data.read import open_table, read_texts
from twinvec.data.table import Table, choose_column, read_format, text_of
from twinvec.errors import InputError, RowError, UnknownNameError
from twinvec.model.tokenizer import check_text, check_texts

__all__ = ["FileSource", "RowBlock", "Source", "blocks"]

BLOCK_ROWS, BLOCK_CHARACTERS = 4096, 1 << 22  # limits of a block


class RowBlock(NamedTuple):
    """Some rows: their texts, and their ids if rows have ids."""

    texts: list[str]
    ids: list[str]


class Source(Protocol):
    """Rows that every run reads from the start."""

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        ...

    def rows(self) -> Iterable[tuple[str, str]]:
        """The text and id of each row; the id is empty if rows have none."""
        ...

    def n_rows(self) -> int | None:
        """The number of rows if it is quick to find, for estimating the remaining time."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what the manifest stores about the source."""
        ...


@dataclass(frozen=True)
class FileSource:
    """A file of lines, csv, tsv, jsonl or parquet, or standard input for ``-``.

    ``column`` holds the texts, as in :func:`twinvec.data.read_texts`; ``id_column`` holds the ids.
    """

    path: str
    column: str | None = None
    id_column: str | None = None
    format: str | None = None

    @property
    def has_ids(self) -> bool:
        """Whether there is an id column."""
        return self.id_column is not None

    def rows(self) -> Iterator[tuple[str, str]]:
        """The text and id of each row; the file is opened immediately, so a wrong file fails early."""
        if self.id_column is None:
            return ((text, "") for text in read_texts(self.path, self.column, format=self.format))
        return _with_ids(open_table(self.path, format=self.format), self.column, self.id_column)

    def n_rows(self) -> int | None:
        """The rows of a parquet file, or about the lines of an uncompressed text file; None for anything else."""
        path = Path(self.path)
        if not path.is_file():
            return None
        if read_format(self.path, self.format) == "parquet":
            with pyarrow(".parquet").ParquetFile(path) as file:
                n: int = file.metadata.num_rows
                return n
        with path.open("rb") as stream:
            if stream.read(2) == b"\x1f\x8b":
                return None
            stream.seek(0)
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 22), b""))

    def describe(self) -> dict[str, Any]:
        """Return the file name without its folder, and the chosen columns."""
        return {"name": Path(self.path).name, "column": self.column, "id": self.id_column}


def _with_ids(table: Table, column: str | None, id_column: str) -> Iterator[tuple[str, str]]:
    if not table.columns:
        raise InputError(f"{table.name} has no rows.", hint="Use a file with at least one row.")
    chosen = choose_column(table.columns, column, source=table.name)
    if id_column not in table.columns:
        raise UnknownNameError(f"column in {table.name}:", id_column, table.columns)
    for record in table.records([chosen, id_column]):
        if isinstance(record, RowError):
            raise record
        number, (value, key) = record
        where = table.where(number)
        if key is None:
            raise RowError(f"{where}: the id in {id_column!r} is missing.", fault="no id")
        yield text_of(value, chosen, where=where), check_text(str(key), f"{where}: the id in {id_column!r}")


def blocks(source: Source) -> Iterator[RowBlock]:
    """Yield the rows of a source in blocks of limited rows and characters."""
    texts: list[str] = []
    ids: list[str] = []
    n_before = n_characters = 0
    for text, key in source.rows():
        texts.append(text)
        if source.has_ids:
            ids.append(key)
        n_characters += len(text)
        if len(texts) == BLOCK_ROWS or n_characters >= BLOCK_CHARACTERS:
            yield RowBlock(check_texts(texts, n_before), ids)
            n_before += len(texts)
            texts, ids, n_characters = [], [], 0
    if texts:
        yield RowBlock(check_texts(texts, n_before), ids)
