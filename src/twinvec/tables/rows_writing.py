"""Rows to a file or to standard output, in the formats that are read: lines, csv, tsv, jsonl, parquet."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.tables.formats import STDIN, rows_format
from twinvec.tables.target import check_target, new_file
from twinvec.terminal import standard_output

__all__ = ["check_rows_target", "write_rows"]

Rows = Iterable[Sequence[object]]

ROW_GROUP = 65_536  # rows of parquet that are read at a time
STDOUT = STDIN  # both are called '-'


def check_rows_target(
    target: str | Path, columns: Sequence[str], *, format: str | None = None, replace: bool = False
) -> None:
    """Refuse, before any work is done, what ``write_rows`` would refuse because of its target or columns."""
    chosen = rows_format(str(target), format)
    if chosen == "lines" and len(columns) != 1:
        raise InputError(f"Plain lines hold one column, not {len(columns)}: {', '.join(columns)}.", hint="Write csv.")
    if chosen == "parquet":
        require("pyarrow", extra="tables", feature="Writing parquet")
        if str(target) == STDOUT:
            raise InputError("Parquet cannot be written to standard output.", hint="Name a file.")
        if is_gzip(target):
            raise InputError(f"{target}: parquet is packed already.", hint="Leave out the ending .gz.")
    if str(target) != STDOUT:
        check_target(Path(target), replace=replace)


def write_rows(
    rows: Rows, columns: Sequence[str], target: str | Path, *, format: str | None = None, replace: bool = False
) -> int:
    """Write rows, each the values of ``columns``, and return their number.

    The format is that of the ending, unless it is named; ``-`` is standard output. Text formats are gzipped where
    the name ends in ``.gz``. A file appears only when it is complete.
    """
    check_rows_target(target, columns, format=format, replace=replace)
    write = WRITERS[rows_format(str(target), format)]
    if str(target) == STDOUT:
        file = standard_output()
        count = write(rows, columns, file)
        file.flush()
        return count
    with new_file(Path(target), replace=replace) as file:
        if not is_gzip(target):
            return write(rows, columns, file)
        with gzip.GzipFile(
            "", "wb", fileobj=file, mtime=0
        ) as packed:  # no name, no time: the same rows, the same bytes
            return write(rows, columns, packed)  # type: ignore[arg-type] # it has all that is used


def is_gzip(target: str | Path) -> bool:
    """Whether the name asks for gzip."""
    return str(target).lower().endswith(".gz")


def _write_lines(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
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
    held = list(rows)  # all of them tell the type of a column, which may begin with empty values
    arrays = []
    for place, name in enumerate(columns):
        try:
            arrays.append(arrow.array([row[place] for row in held]))
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            raise InputError(f"The values of {name!r} have no type in common: {error}", hint="Write jsonl.") from error
    parquet.write_table(arrow.table(arrays, names=list(columns)), file, row_group_size=ROW_GROUP)
    return len(held)


WRITERS: dict[str, Callable[[Rows, Sequence[str], IO[bytes]], int]] = {
    "lines": _write_lines,
    "csv": _write_csv,
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
