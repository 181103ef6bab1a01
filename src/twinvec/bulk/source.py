"""Where the rows come from: a file of any size, read as a stream, in blocks of bounded size."""

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

BLOCK_ROWS, BLOCK_CHARACTERS = 4096, 1 << 22  # what is read ahead


class RowBlock(NamedTuple):
    """Some rows: their texts, and their ids where they have any."""

    texts: list[str]
    ids: list[str]


class Source(Protocol):
    """Rows that every run reads from their start."""

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        ...

    def rows(self) -> Iterable[tuple[str, str]]:
        """The text and the id of each row; without ids, an empty one."""
        ...

    def n_rows(self) -> int | None:
        """How many rows there are, where that is known soon; for telling the time left."""
        ...

    def described(self) -> dict[str, Any]:
        """What the manifest says of it."""
        ...


@dataclass(frozen=True)
class FileSource:
    """A file of lines, csv, tsv, jsonl or parquet, or standard input for ``-``.

    ``column`` has the texts, as in :func:`twinvec.data.read_texts`; ``id_column`` has what rows are called by.
    """

    path: str
    column: str | None = None
    id_column: str | None = None
    format: str | None = None

    @property
    def has_ids(self) -> bool:
        """Whether a column of ids was named."""
        return self.id_column is not None

    def rows(self) -> Iterator[tuple[str, str]]:
        """The text and the id of each row; the first is read at once, so that a wrong file shows early."""
        if self.id_column is None:
            return ((text, "") for text in read_texts(self.path, self.column, format=self.format))
        return _with_ids(open_table(self.path, format=self.format), self.column, self.id_column)

    def n_rows(self) -> int | None:
        """Rows of a parquet file; about the lines of a text file that is not zipped; None of anything else."""
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

    def described(self) -> dict[str, Any]:
        """Its name without the folder, and the columns asked for."""
        return {"name": Path(self.path).name, "column": self.column, "id": self.id_column}


def _with_ids(table: Table, column: str | None, id_column: str) -> Iterator[tuple[str, str]]:
    if not table.columns:
        raise InputError(f"{table.name} holds no rows.", hint="Give it at least one row.")
    chosen = choose_column(table.columns, column, source=table.name)
    if id_column not in table.columns:
        raise UnknownNameError(f"column in {table.name}:", id_column, table.columns)
    for record in table.records([chosen, id_column]):
        if isinstance(record, RowError):
            raise record
        number, (value, key) = record
        if key is None:
            raise RowError(f"{table.where(number)}: the id in {id_column!r} is missing.", fault="no id")
        where = table.where(number)
        yield text_of(value, chosen, where=where), check_text(str(key), f"{where}: the id in {id_column!r}")


def blocks(source: Source) -> Iterator[RowBlock]:
    """The rows of a source, at most so many and so long at a time."""
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
