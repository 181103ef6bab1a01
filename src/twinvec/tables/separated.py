"""Comma and tab separated values. The first row names the columns; ``tsv`` knows no quotes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Protocol

from twinvec.errors import RowError
from twinvec.tables.lines import decoded_lines, display_name
from twinvec.tables.table import Record, Table

__all__ = ["open_csv", "open_tsv"]


class _Reader(Protocol):
    """What ``csv.reader`` returns: rows, and the number of lines read so far."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...


def open_csv(source: str) -> Table:
    """Comma separated values; quoted fields may span lines."""
    return _open(source, csv.reader(_lines(source), strict=True))


def open_tsv(source: str) -> Table:
    """Tab separated values; a quote is a character like any other."""
    return _open(source, csv.reader(_lines(source), delimiter="\t", quoting=csv.QUOTE_NONE))


def _lines(source: str) -> Iterator[str]:
    return (text + "\n" for _, text in decoded_lines(source))


def _open(source: str, reader: _Reader) -> Table:
    name = display_name(source)
    rows = _rows(reader, name)
    names = next((row for row in rows if row), [])
    if isinstance(names, RowError):
        raise names
    return Table(name, tuple(names), "line", partial(_records, reader=reader, rows=rows, names=names, source=name))


def _rows(reader: _Reader, source: str) -> Iterator[list[str] | RowError]:
    """The rows; csv goes on with the next line after one that it cannot read."""
    while True:
        try:
            yield from reader
            return
        except csv.Error as error:
            yield RowError(
                f"{source}, line {reader.line_num}: {error}.",
                fault="broken quotes, or a field over the size limit",
                hint="Check the quotes; for fields over 128 KB raise csv.field_size_limit.",
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
