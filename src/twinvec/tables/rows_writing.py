"""Rows to a file or to standard output, in the formats that are read: lines, csv, tsv, jsonl, parquet."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.tables.formats import STDIN, read_format
from twinvec.tables.target import new_file

__all__ = ["write_rows"]

Rows = Iterable[Sequence[object]]

WRITE_ROWS = 8192  # a row group of parquet
STDOUT = STDIN  # both are called '-'


def write_rows(
    rows: Rows, columns: Sequence[str], target: str | Path, *, format: str | None = None, replace: bool = False
) -> int:
    """Write rows, each the values of ``columns``, and return their number.

    The format is that of the ending, unless it is named; ``-`` is standard output. A file appears only when it is
    complete.
    """
    write = WRITERS[read_format(str(target), format)]
    if str(target) == STDOUT:
        if write is _write_parquet:
            raise InputError("Parquet cannot be written to standard output.", hint="Name a file.")
        count = write(rows, columns, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return count
    with new_file(Path(target), replace=replace) as file:
        return write(rows, columns, file)


def _write_lines(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    if len(columns) != 1:
        raise InputError(f"Plain lines hold one column, not {len(columns)}: {', '.join(columns)}.", hint="Write csv.")
    count = 0
    for (text,) in rows:
        file.write(f"{_without(text, columns[0], chr(10))}\n".encode())
        count += 1
    return count


def _write_csv(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        count = 0
        for row in rows:
            writer.writerow(["" if value is None else value for value in row])
            count += 1
        return count
    finally:
        text.detach()  # the caller closes the file


def _write_tsv(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    file.write(("\t".join(columns) + "\n").encode())
    count = 0
    for row in rows:
        shown = ["" if value is None else str(value) for value in row]
        values = [_without(value, name, "\t\n") for value, name in zip(shown, columns, strict=True)]
        file.write(("\t".join(values) + "\n").encode())
        count += 1
    return count


def _without(value: object, column: str, marks: str) -> str:
    """A value that has none of the characters that the format is made of."""
    text = str(value)
    for mark in marks:
        if mark in text:
            raise InputError(
                f"A value of {column!r} holds a {'tab' if mark == chr(9) else 'line break'}: {text[:40]!r}.",
                hint="Write csv, jsonl or parquet instead.",
            )
    return text


def _write_jsonl(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    count = 0
    for row in rows:
        file.write((json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n").encode())
        count += 1
    return count


def _write_parquet(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    arrow = require("pyarrow", extra="tables", feature="Writing parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Writing parquet")
    rows, count, writer = iter(rows), 0, None
    while chunk := [dict(zip(columns, row, strict=True)) for row in islice(rows, WRITE_ROWS)]:
        table = arrow.Table.from_pylist(chunk, schema=writer.schema if writer else None)
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
        count += len(chunk)
    if writer is None:
        raise InputError("There are no rows to write as parquet.")
    writer.close()
    return count


WRITERS: dict[str, Callable[[Rows, Sequence[str], IO[bytes]], int]] = {
    "lines": _write_lines,
    "csv": _write_csv,
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
