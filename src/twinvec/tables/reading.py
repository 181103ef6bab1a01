"""Texts from a file or from standard input, one at a time.

Text formats are UTF-8 (a byte order mark is skipped) and may be gzipped. In ``lines`` every line is a text,
an empty one too, so that row ``i`` stays line ``i``. ``csv`` and ``tsv`` start with a row of column names;
``tsv`` knows no quotes. ``jsonl`` has an object per line. Blank lines of jsonl, and of tables with several columns,
are no rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Protocol

from twinvec.errors import InputError
from twinvec.tables.columns import choose_column, text_of
from twinvec.tables.formats import STDIN, read_format
from twinvec.tables.lines import check_file, decoded_lines, display_name

__all__ = ["read_texts"]


def read_texts(path: str | Path, column: str | None = None, *, format: str | None = None) -> Iterator[str]:
    """The texts of a file, or of standard input for ``-``.

    ``column`` names the column of the texts; without it, it is the only one, or the one called text, sentence
    or content. The first text is read at once, so that a wrong file or column shows before any costly work.
    """
    source = str(path)
    chosen = read_format(source, format)
    if column is not None and chosen == "lines":
        raise InputError(
            f"Plain lines have no columns, so there is no column {column!r}.",
            hint="Leave the column out, or name the format: csv, tsv, jsonl or parquet.",
        )
    texts = READERS[chosen](source, column)
    first = next(texts, None)
    if first is None:
        raise InputError(f"{display_name(source)} holds no texts.", hint="Give it at least one row.")
    return chain([first], texts)


def read_lines(source: str, column: str | None) -> Iterator[str]:
    """Every line as a text."""
    return (line.text for line in decoded_lines(source))


def read_csv(source: str, column: str | None) -> Iterator[str]:
    """The texts of comma separated values; quoted fields may span lines."""
    lines = (line.text + "\n" for line in decoded_lines(source))
    return _rows_to_texts(csv.reader(lines, strict=True), source, column=column)


def read_tsv(source: str, column: str | None) -> Iterator[str]:
    """The texts of tab separated values; a quote is a character like any other."""
    lines = (line.text + "\n" for line in decoded_lines(source))
    return _rows_to_texts(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), source, column=column)


class _Rows(Protocol):
    """What ``csv.reader`` returns: rows, and the number of lines read so far."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...


def _rows_to_texts(table: _Rows, source: str, *, column: str | None) -> Iterator[str]:
    name = display_name(source)
    try:
        names = next((row for row in table if row), None)
        if names is None:
            return
        place = names.index(choose_column(names, column, source=name))
        for row in table:
            if not row and len(names) > 1:
                continue
            row = row or [""]  # of a single column, an empty line is an empty text
            if len(row) != len(names):
                raise InputError(
                    f"{name}, line {table.line_num}: the row has {len(row)} fields, "
                    f"the first row {len(names)} ({', '.join(names)}).",
                    hint="Quote fields that hold the separator, and write empty fields too.",
                )
            yield row[place]
    except csv.Error as error:
        raise InputError(
            f"{name}, line {table.line_num}: {error}.",
            hint="Check the quotes; for fields over 128 KB raise csv.field_size_limit.",
        ) from error


def read_jsonl(source: str, column: str | None) -> Iterator[str]:
    """The texts of a file with a JSON object in every line."""
    for line in decoded_lines(source):
        if not line.text.strip():
            continue
        where = f"{display_name(source)}, line {line.number}"
        row = _json_object(line.text, where)
        if column is None:
            column = choose_column(list(row), None, source=display_name(source))
        yield text_of(row, column, where=where)


def _json_object(text: str, where: str) -> dict[str, object]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a number of too many digits
        raise InputError(f"{where} is not JSON: {error}.", hint="Write one JSON object per line.") from error
    if not isinstance(row, dict):
        raise InputError(
            f"{where} holds a {type(row).__name__}, not an object.",
            hint='Write rows like {"text": "..."}, or read plain lines with the format: lines.',
        )
    return row


def read_parquet(source: str, column: str | None) -> Iterator[str]:
    """The texts of a parquet file, read batch by batch."""
    from twinvec.tables.parquet import parquet_texts

    if source == STDIN:
        raise InputError("Parquet cannot be read from standard input.", hint="Save it to a file first.")
    return parquet_texts(check_file(source), column)


READERS: dict[str, Callable[[str, str | None], Iterator[str]]] = {
    "lines": read_lines,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
}
