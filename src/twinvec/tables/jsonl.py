"""Files with a JSON object in every line. The first object names the columns; blank lines are no rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TypeAlias

from twinvec.errors import RowError
from twinvec.tables.lines import decoded_lines, display_name
from twinvec.tables.table import Record, Table

__all__ = ["open_jsonl"]

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
            return Table(name, tuple(row), "line", partial(_records, lines=chain(head, lines), source=name))
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


def _records(columns: Sequence[str], *, lines: Iterable[Numbered], source: str) -> Iterator[Record]:
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
