"""Read texts or rows from lines, csv, tsv, jsonl and parquet, one row at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import IO, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from twinvec.data.table import (
    STDIN,
    Record,
    Row,
    Table,
    check_columns,
    check_file,
    choose_column,
    decoded_lines,
    display_name,
    read_format,
    text_of,
)
from twinvec.errors import InputError, RowError
from twinvec.extras import require
from twinvec.types import Array

__all__ = ["TextRows", "open_table", "read_rows", "read_text_rows", "read_texts", "write_parquet"]

Numbered: TypeAlias = tuple[int, dict[str, object] | RowError]  # a line number, and the object or error of that line

MAX_BAD_LINES = 20  # before the first object; with more, the file has another format


def open_jsonl(source: str) -> Table:
    """Open a file of JSON objects, one per line."""
    name = display_name(source)
    lines = _objects(source, name)
    head: list[Numbered] = []
    for number, row in islice(lines, MAX_BAD_LINES + 1):
        head.append((number, row))
        if isinstance(row, dict):
            return Table(name, tuple(row), "line", partial(_json_records, lines=chain(head, lines), source=name))
    for _, row in head:
        if isinstance(row, RowError):
            raise row
    return Table(name, (), "line", lambda columns: iter(()))


def _objects(source: str, name: str) -> Iterator[Numbered]:
    for number, text in decoded_lines(source):
        if not text or text.isspace():
            continue
        try:
            yield number, _object(text, f"{name}, line {number}")
        except RowError as error:
            yield number, error


def _object(text: str, where: str) -> dict[str, object]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a number with too many digits
        raise RowError(
            f"{where} is not JSON: {error}.", fault="not JSON", hint="Write one JSON object per line."
        ) from error
    if not isinstance(row, dict) or not row:
        found = "an empty object" if isinstance(row, dict) else f"a {type(row).__name__}, not an object"
        raise RowError(
            f"{where} is {found}.",
            fault="not a JSON object",
            hint='Write rows like {"text": "..."}, or use the format lines for plain text.',
        )
    return row


def _json_records(columns: Sequence[str], *, lines: Iterable[Numbered], source: str) -> Iterator[Record]:
    for number, row in lines:
        if isinstance(row, RowError):
            yield row
            continue
        try:
            values = [row[column] for column in columns]
        except KeyError as error:
            yield RowError(
                f"{source}, line {number} has no column {error.args[0]!r}, only: {', '.join(row) or 'nothing'}.",
                fault="missing column",
                hint="Write all columns in every row.",
            )
        else:
            yield number, values


LONGEST_FIELD = 2**31 - 1  # characters; csv uses a C long, which has 32 bits on some systems
_raising = Lock()


class _Reader(Protocol):
    """The type of ``csv.reader``: rows, and the number of lines read so far."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...


def open_csv(source: str) -> Table:
    """Open comma-separated values; quoted fields may span lines."""
    lines = _Lines(source)
    return _open(source, csv.reader(lines, strict=True), lines)


def open_tsv(source: str) -> Table:
    """Open tab-separated values; quotes have no special meaning."""
    lines = _Lines(source)
    return _open(source, csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), lines)


class _Lines:
    """The lines of a source, for csv to read. ``n_waiting`` counts the characters of the current, incomplete row."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.n_waiting = 0

    def __iter__(self) -> Iterator[str]:
        for _, text in decoded_lines(self._source):
            self.n_waiting += len(text) + 1
            if self.n_waiting > csv.field_size_limit():
                _allow_fields(self.n_waiting)
            yield text + "\n"


def _allow_fields(n_characters: int) -> None:
    """Allow csv fields of this many characters.

    The limit (131,072 by default) applies to the whole process, so it is only raised, and only as far as needed.
    """
    with _raising:
        if csv.field_size_limit() < n_characters <= LONGEST_FIELD:
            csv.field_size_limit(n_characters)


def _open(source: str, reader: _Reader, lines: _Lines) -> Table:
    name = display_name(source)
    rows = _separated_rows(reader, lines, name)
    names = next((row for row in rows if row), [])
    if isinstance(names, RowError):
        raise names
    return Table(
        name, tuple(names), "line", partial(_separated_records, reader=reader, rows=rows, names=names, source=name)
    )


def _separated_rows(reader: _Reader, lines: _Lines, source: str) -> Iterator[list[str] | RowError]:
    """The rows; after an invalid row, csv continues with the next line."""
    while True:
        try:
            for row in reader:
                lines.n_waiting = 0
                yield row
            return
        except csv.Error as error:
            lines.n_waiting = 0
            yield RowError(
                f"{source}, line {reader.line_num}: {error}.",
                fault="broken quotes, or a field over the size limit",
                hint="Check the quotes: double a quote inside a quoted field, and close the field.",
            )


def _separated_records(
    columns: Sequence[str], reader: _Reader, *, rows: Iterator[list[str] | RowError], names: list[str], source: str
) -> Iterator[Record]:
    indices = [names.index(column) for column in columns]
    pick = itemgetter(*indices) if len(indices) > 1 else itemgetter(slice(indices[0], indices[0] + 1))
    for row in rows:
        if isinstance(row, RowError):
            yield row
        elif len(row) == len(names):
            yield reader.line_num, pick(row)
        elif not row and len(names) == 1:  # with a single column, an empty line is an empty text
            yield reader.line_num, [""]
        elif row:
            yield RowError(
                f"{source}, line {reader.line_num}: the row has {len(row)} fields, "
                f"but the header has {len(names)} ({', '.join(names)}).",
                fault="wrong number of fields",
                hint="Quote fields that contain the separator, and write empty fields too.",
            )


READ_ROWS, WRITE_ROWS = 1024, 8192  # rows in memory at a time; a row group of width 384 is 12 MB


def open_parquet(source: str) -> Table:
    """Open a parquet file, which is read batch by batch, and only the requested columns."""
    if source == STDIN:
        raise InputError("Parquet cannot be read from standard input.", hint="Save it to a file first.")
    path = check_file(source)
    with _opened(path) as file:
        names = tuple(file.schema_arrow.names)
    return Table(source, names, "row", partial(_parquet_records, path))


def _parquet_records(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    with _opened(path) as file:
        batches = file.iter_batches(batch_size=READ_ROWS, columns=list(columns))
        rows = (zip(*(batch.column(name).to_pylist() for name in columns), strict=True) for batch in batches)
        yield from enumerate(chain.from_iterable(rows), start=1)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    arrow = require("pyarrow", extra="tables", feature="Reading parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Reading parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path} cannot be read as parquet: {reason}.", hint="Check the file.") from error


def write_parquet(rows: Iterable[tuple[str, Array]], file: IO[bytes]) -> int:
    """Write columns ``text`` and ``vector`` (a fixed-size list), and return the number of rows."""
    arrow = require("pyarrow", extra="tables", feature="Writing parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Writing parquet")
    rows = iter(rows)
    first = next(rows)
    kind = arrow.list_(arrow.from_numpy_dtype(first[1].dtype), len(first[1]))
    schema = arrow.schema([("text", arrow.string()), ("vector", kind)])
    n_rows = 0
    with parquet.ParquetWriter(file, schema) as writer:
        rows = chain([first], rows)
        while chunk := list(islice(rows, WRITE_ROWS)):
            writer.write_table(_table(chunk, schema, arrow=arrow))
            n_rows += len(chunk)
    return n_rows


def _table(chunk: list[tuple[str, Array]], schema: Any, *, arrow: ModuleType) -> Any:  # noqa: ANN401 - pyarrow's
    texts, vectors = zip(*chunk, strict=True)
    values = arrow.array(np.stack(vectors).ravel())
    lists = arrow.FixedSizeListArray.from_arrays(values, schema.field("vector").type.list_size)
    return arrow.Table.from_arrays([arrow.array(texts, arrow.string()), lists], schema=schema)


Item = TypeVar("Item")

LINES_COLUMN = "text"  # the column name of plain lines


def open_table(path: str | Path, *, format: str | None = None) -> Table:
    """Open a file, or standard input for ``-``, and read its column names; rows are read on demand.

    A file without a header or object has no columns. Plain lines have one, called text.
    """
    return OPENERS[read_format(str(path), format)](str(path))


def read_texts(path: str | Path, column: str | None = None, *, format: str | None = None) -> Iterator[str]:
    """Read the texts of a file, or of standard input for ``-``.

    ``column`` is the column of the texts; by default, the only one, or the one called text, sentence or content.
    """
    if column is not None and read_format(str(path), format) == "lines":
        raise _no_columns(column)
    table = open_table(path, format=format)
    texts = _texts(table, column) if table.columns else iter(())
    return _with_first(texts, problem=f"{table.name} has no texts.")


def read_rows(path: str | Path, columns: Sequence[str], *, format: str | None = None) -> Iterator[Row]:
    """Read the rows of a file, or of standard input for ``-``, with their values in ``columns``.

    Values are strings in csv and tsv, and have the type stored in the file in jsonl and parquet.
    """
    if list(columns) != [LINES_COLUMN] and read_format(str(path), format) == "lines":
        raise _no_columns(*columns)
    table = open_table(path, format=format)
    if table.columns:
        check_columns(table.columns, columns, source=table.name)
    return _with_first(_rows(table, columns), problem=f"{table.name} has no rows.")


@dataclass(frozen=True, slots=True)
class TextRows:
    """The texts of a file, with the values of all columns for each."""

    texts: list[str]
    columns: tuple[str, ...]
    values: list[list[object]]
    format: str


def read_text_rows(path: str | Path, column: str | None = None, *, format: str | None = None) -> TextRows:
    """Read all rows of a file, or of standard input for ``-``; every row must have a text."""
    found = read_format(str(path), format)
    if column is not None and found == "lines":
        raise _no_columns(column)
    table = open_table(path, format=format)
    chosen = choose_column(table.columns, column, source=table.name) if table.columns else ""
    texts, values = [], []
    for row in _with_first(_rows(table, table.columns), problem=f"{table.name} has no texts."):
        texts.append(text_of(row.values[chosen], chosen, where=row.where))
        values.append(list(row.values.values()))
    return TextRows(texts, table.columns, values, found)


def _texts(table: Table, column: str | None) -> Iterator[str]:
    chosen = choose_column(table.columns, column, source=table.name)
    for record in table.records([chosen]):
        if isinstance(record, RowError):
            raise record
        number, (value,) = record
        yield value if isinstance(value, str) else text_of(value, chosen, where=table.where(number))


def _rows(table: Table, columns: Sequence[str]) -> Iterator[Row]:
    for row in table.rows(columns) if table.columns else ():
        if isinstance(row, RowError):
            raise row
        yield row


def _no_columns(*columns: str) -> InputError:
    return InputError(
        f"Plain lines have no columns, so there is no column {' or '.join(map(repr, columns))}.",
        hint="Omit the column, or set the format: csv, tsv, jsonl or parquet.",
    )


def _with_first(items: Iterator[Item], *, problem: str) -> Iterator[Item]:
    for first in items:
        return chain([first], items)
    raise InputError(problem, hint="Add at least one row.")


def open_lines(source: str) -> Table:
    """Open plain text; every line is a row with one text."""
    name = display_name(source)
    return Table(name, (LINES_COLUMN,), "line", lambda _: ((number, [text]) for number, text in decoded_lines(source)))


OPENERS: dict[str, Callable[[str], Table]] = {
    "lines": open_lines,
    "csv": open_csv,
    "tsv": open_tsv,
    "jsonl": open_jsonl,
    "parquet": open_parquet,
}
