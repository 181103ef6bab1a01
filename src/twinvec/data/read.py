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

Numbered: TypeAlias = tuple[int, dict[str, object] | RowError]  # a line's number, and its object or what is wrong

MAX_BAD_LINES = 20  # before the first object; a file with more is of another format


def open_jsonl(source: str) -> Table:
    """A table of JSON objects."""
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
    except (ValueError, RecursionError) as error:  # ValueError also for a number of too many digits
        raise RowError(
            f"{where} is not JSON: {error}.", fault="not JSON", hint="Write one JSON object per line."
        ) from error
    if not isinstance(row, dict) or not row:
        shown = "an empty object" if isinstance(row, dict) else f"a {type(row).__name__}, not an object"
        raise RowError(
            f"{where} holds {shown}.",
            fault="no JSON object",
            hint='Write rows like {"text": "..."}, or read plain lines with the format: lines.',
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
                fault="a column is missing in the row",
                hint="Write all columns in every row.",
            )
        else:
            yield number, values


LONGEST_FIELD = 2**31 - 1  # characters; csv counts them in a C long, which has 32 bits on some systems
_raising = Lock()


class _Reader(Protocol):
    """What ``csv.reader`` returns: rows, and the number of lines read so far."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...


def open_csv(source: str) -> Table:
    """Comma separated values; quoted fields may span lines."""
    lines = _Lines(source)
    return _open(source, csv.reader(lines, strict=True), lines)


def open_tsv(source: str) -> Table:
    """Tab separated values; a quote is a character like any other."""
    lines = _Lines(source)
    return _open(source, csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), lines)


class _Lines:
    """The lines of a source, for csv to read. ``n_waiting`` counts the characters of the row that is not yet whole."""

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
    """Let csv read fields of this many characters.

    Its limit (by default 131,072) is the whole process's, so it is only ever raised, and only as far as a row needs.
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
    """The rows; csv goes on with the next line after one that it cannot read."""
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
                hint="Check the quotes: a quote within a quoted field is doubled, and the field ends with one.",
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
        elif not row and len(names) == 1:  # of a single column, an empty line is an empty text
            yield reader.line_num, [""]
        elif row:
            yield RowError(
                f"{source}, line {reader.line_num}: the row has {len(row)} fields, "
                f"the first row {len(names)} ({', '.join(names)}).",
                fault="wrong number of fields",
                hint="Quote fields that hold the separator, and write empty fields too.",
            )


READ_ROWS, WRITE_ROWS = 1024, 8192  # rows held at once; a written row group of width 384 is 12 MB


def open_parquet(source: str) -> Table:
    """A parquet file, read batch by batch, and of it only the columns asked for."""
    if source == STDIN:
        raise InputError("Parquet cannot be read from standard input.", hint="Save it to a file first.")
    path = check_file(source)
    with _opened(path) as file:
        names = tuple(file.schema_arrow.names)
    return Table(source, names, "row", partial(_records, path))


def _records(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    with _opened(path) as file:
        batches = file.iter_batches(batch_size=READ_ROWS, columns=list(columns))
        rows = (zip(*(batch.column(name).to_pylist() for name in columns), strict=True) for batch in batches)
        yield from enumerate(chain.from_iterable(rows), start=1)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    arrow = _pyarrow("Reading parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Reading parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path} cannot be read as parquet: {reason}.", hint="Check the file.") from error


def write_parquet(rows: Iterable[tuple[str, Array]], file: IO[bytes]) -> int:
    """Write columns ``text`` and ``vector`` (a list of fixed size); returns the number of rows."""
    arrow = _pyarrow("Writing parquet")
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


def _pyarrow(feature: str) -> ModuleType:
    return require("pyarrow", extra="tables", feature=feature)


Item = TypeVar("Item")

LINES_COLUMN = "text"  # what the one column of a file of plain lines is called


def open_table(path: str | Path, *, format: str | None = None) -> Table:
    """A file, or standard input for ``-``, with the names of its columns; rows are read as they are asked for.

    A file without any row of names or object has no columns. Plain lines have one, called text.
    """
    return OPENERS[read_format(str(path), format)](str(path))


def read_texts(path: str | Path, column: str | None = None, *, format: str | None = None) -> Iterator[str]:
    """The texts of a file, or of standard input for ``-``.

    ``column`` names the column of the texts; without it, it is the only one, or the one called text, sentence
    or content.
    """
    if column is not None and read_format(str(path), format) == "lines":
        raise _no_columns(column)
    table = open_table(path, format=format)
    texts = _texts(table, column) if table.columns else iter(())
    return _with_first(texts, problem=f"{table.name} holds no texts.")


def read_rows(path: str | Path, columns: Sequence[str], *, format: str | None = None) -> Iterator[Row]:
    """The rows of a file, or of standard input for ``-``: of each its place, and its values in ``columns``.

    Values are strings in csv and tsv, and what the file holds in jsonl and parquet.
    """
    if list(columns) != [LINES_COLUMN] and read_format(str(path), format) == "lines":
        raise _no_columns(*columns)
    table = open_table(path, format=format)
    rows: Iterator[Row] = iter(())
    if table.columns:
        check_columns(table.columns, columns, source=table.name)
        rows = _rows(table, columns)
    return _with_first(rows, problem=f"{table.name} holds no rows.")


@dataclass(frozen=True, slots=True)
class TextRows:
    """The texts of a file, and beside each the values of all columns."""

    texts: list[str]
    columns: tuple[str, ...]
    values: list[list[object]]
    format: str


def read_text_rows(path: str | Path, column: str | None = None, *, format: str | None = None) -> TextRows:
    """All rows of a file, or of standard input for ``-``; refuses one without rows, and a row without a text."""
    found = read_format(str(path), format)
    if column is not None and found == "lines":
        raise _no_columns(column)
    table = open_table(path, format=format)
    chosen = choose_column(table.columns, column, source=table.name) if table.columns else ""
    rows = _rows(table, table.columns) if table.columns else iter(())
    texts, values = [], []
    for row in _with_first(rows, problem=f"{table.name} holds no texts."):
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
    for row in table.rows(columns):
        if isinstance(row, RowError):
            raise row
        yield row


def _no_columns(*asked: str) -> InputError:
    return InputError(
        f"Plain lines have no columns, so there is no column {' or '.join(map(repr, asked))}.",
        hint="Leave the column out, or name the format: csv, tsv, jsonl or parquet.",
    )


def _with_first(items: Iterator[Item], *, problem: str) -> Iterator[Item]:
    for first in items:
        return chain([first], items)
    raise InputError(problem, hint="Give it at least one row.")


def open_lines(source: str) -> Table:
    """Every line as a row with one text."""
    return Table(display_name(source), (LINES_COLUMN,), "line", lambda _: _line_records(source))


def _line_records(source: str) -> Iterator[tuple[int, list[str]]]:
    return ((number, [text]) for number, text in decoded_lines(source))


OPENERS: dict[str, Callable[[str], Table]] = {
    "lines": open_lines,
    "csv": open_csv,
    "tsv": open_tsv,
    "jsonl": open_jsonl,
    "parquet": open_parquet,
}
