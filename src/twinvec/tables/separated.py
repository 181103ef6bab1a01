"""Comma and tab separated values. The first row names the columns; ``tsv`` knows no quotes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from threading import Lock
from typing import Protocol

from twinvec.errors import RowError
from twinvec.tables.lines import decoded_lines, display_name
from twinvec.tables.table import Record, Table

__all__ = ["open_csv", "open_tsv"]

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
    rows = _rows(reader, lines, name)
    names = next((row for row in rows if row), [])
    if isinstance(names, RowError):
        raise names
    return Table(name, tuple(names), "line", partial(_records, reader=reader, rows=rows, names=names, source=name))


def _rows(reader: _Reader, lines: _Lines, source: str) -> Iterator[list[str] | RowError]:
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


def _records(
    columns: Sequence[str], reader: _Reader, *, rows: Iterator[list[str] | RowError], names: list[str], source: str
) -> Iterator[Record]:
    places = [names.index(column) for column in columns]
    pick = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
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
