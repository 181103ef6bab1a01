"""Texts or rows from a file or from standard input, one at a time.

Text formats are UTF-8 (a byte order mark is skipped) and may be gzipped. In ``lines`` every line is a text,
an empty one too, so that row ``i`` stays line ``i``. ``csv`` and ``tsv`` start with a row of column names;
``tsv`` knows no quotes. ``jsonl`` has an object per line. Blank lines of jsonl, and of tables with several columns,
are no rows. The first text or row is read at once, so that a wrong file or column shows before any costly work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from twinvec.errors import InputError, RowError
from twinvec.tables.columns import check_columns, choose_column, text_of
from twinvec.tables.formats import read_format
from twinvec.tables.jsonl import open_jsonl
from twinvec.tables.lines import decoded_lines, display_name
from twinvec.tables.parquet import open_parquet
from twinvec.tables.separated import open_csv, open_tsv
from twinvec.tables.table import Row, Table

__all__ = ["open_table", "read_rows", "read_texts"]

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
