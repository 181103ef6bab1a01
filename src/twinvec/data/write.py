"""Write rows or vectors to a file or to standard output, one row at a time."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TextIO

import numpy as np

from twinvec.data.read import write_parquet
from twinvec.data.table import STDIN, rows_format, write_format
from twinvec.errors import InputError, shown
from twinvec.extras import require
from twinvec.files import check_target, new_file
from twinvec.progress import standard_output
from twinvec.types import Array

__all__ = ["check_rows_target", "jsonl_row", "write_rows", "write_vectors"]

HEADER_BYTES = 128  # magic 6, version 2, length 2, and a padded dict


def write_vectors(rows: Iterable[tuple[str, Array]], target: str | Path, *, replace: bool = False) -> int:
    """Write texts with their vectors, each ``(width,)``, and return their number. The extension sets the format.

    ``.npy`` has only the vectors, ``(n, width)``; ``.jsonl`` and ``.parquet`` have ``text`` and ``vector``. Rows are
    streamed, and the file appears only once it is complete.
    """
    write = VECTOR_WRITERS[write_format(str(target))]
    with new_file(Path(target), replace=replace) as file:
        return write(_at_least_one(rows, target), file)


def _at_least_one(rows: Iterable[tuple[str, Array]], target: str | Path) -> Iterator[tuple[str, Array]]:
    row = None
    for row in rows:
        yield row
    if row is None:
        raise InputError(f"There are no vectors to write to {target}.")


def jsonl_row(text: str, vector: Array) -> bytes:
    """One line of JSON. Nine digits are enough to restore the same float32.

    >>> jsonl_row("Hi.", np.array([0.1, -2.0], dtype=np.float32))
    b'{"text": "Hi.", "vector": [0.100000001, -2]}\\n'
    """
    numbers = ", ".join(["%.9g"] * len(vector)) % tuple(vector.tolist())
    return f'{{"text": {json.dumps(text, ensure_ascii=False)}, "vector": [{numbers}]}}\n'.encode()


def npy_header(dtype: np.dtype[np.generic], shape: tuple[int, int]) -> bytes:
    """The 128-byte header of an ``.npy`` file, format 1.0; its length does not depend on the number of rows.

    >>> len(npy_header(np.dtype(np.float32), (7, 384)))
    128
    """
    fields = repr({"descr": dtype.str, "fortran_order": False, "shape": shape})
    body = fields.ljust(HEADER_BYTES - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body.encode("ascii")


def write_npy(rows: Iterable[tuple[str, Array]], file: IO[bytes]) -> int:
    """Write the vectors, then fill in the header, which has their number."""
    file.write(b"\0" * HEADER_BYTES)
    n_rows = 0
    for _, vector in rows:
        file.write(np.ascontiguousarray(vector).data)
        n_rows += 1
    file.seek(0)
    file.write(npy_header(vector.dtype, (n_rows, len(vector))))
    return n_rows


def write_jsonl(rows: Iterable[tuple[str, Array]], file: IO[bytes]) -> int:
    """Write one JSON object per text."""
    n_rows = 0
    for text, vector in rows:
        file.write(jsonl_row(text, vector))
        n_rows += 1
    return n_rows


VECTOR_WRITERS: dict[str, Callable[[Iterable[tuple[str, Array]], IO[bytes]], int]] = {
    "npy": write_npy,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
}


Rows = Iterable[Sequence[object]]

ROW_GROUP = 65_536  # rows per parquet row group
STDOUT = STDIN  # both are '-'
# the start of a spreadsheet formula (also in full-width forms), unless the cell is a number
FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)  # raised by encoders for unsupported values
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def check_rows_target(
    target: str | Path, columns: Sequence[str], *, format: str | None = None, replace: bool = False
) -> None:
    """Raise the errors of ``write_rows`` about its target and columns, before any work is done."""
    chosen = rows_format(str(target), format)
    if chosen == "lines" and len(columns) != 1:
        raise InputError(f"Plain lines have one column, not {len(columns)}: {', '.join(columns)}.", hint="Write csv.")
    if chosen == "parquet":
        require("pyarrow", extra="tables", feature="Writing parquet")
        if str(target) == STDOUT:
            raise InputError("Parquet cannot be written to standard output.", hint="Name a file.")
        if is_gzip(target):
            raise InputError(f"{target}: parquet is already compressed.", hint="Remove the extension .gz.")
    if str(target) != STDOUT:
        check_target(Path(target), replace=replace)


def write_rows(
    rows: Rows,
    columns: Sequence[str],
    target: str | Path,
    *,
    format: str | None = None,
    replace: bool = False,
    csv_safe: bool = False,
) -> int:
    """Write rows, each the values of ``columns``, and return their number.

    The extension sets the format, unless ``format`` does; ``-`` is standard output. Text formats are gzipped if the
    name ends in ``.gz``. A file appears only once it is complete. With ``csv_safe``, csv and tsv cells that a
    spreadsheet would run as a formula are prefixed with a quote (').
    """
    check_rows_target(target, columns, format=format, replace=replace)
    chosen = rows_format(str(target), format)
    write = ROW_WRITERS[chosen]
    if csv_safe and chosen in ("csv", "tsv"):
        rows, columns = (list(map(safe_cell, row)) for row in rows), [str(safe_cell(name)) for name in columns]
    if str(target) == STDOUT:
        file = standard_output()
        count = write(rows, columns, file)
        file.flush()
        return count
    with new_file(Path(target), replace=replace) as file:
        if not is_gzip(target):
            return write(rows, columns, file)
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:  # no name or time, for reproducible bytes
            return write(rows, columns, packed)  # type: ignore[arg-type] # it has all that is used


def safe_cell(value: object) -> object:
    """A value that a spreadsheet does not run as a formula; numbers are unchanged.

    >>> safe_cell("=cmd()"), safe_cell("-1+1"), safe_cell("-1.5"), safe_cell(-1.5), safe_cell("a=b")
    ("'=cmd()", "'-1+1", '-1.5', -1.5, 'a=b')
    """
    if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def is_gzip(target: str | Path) -> bool:
    """Whether the name ends in ``.gz``."""
    return str(target).lower().endswith(".gz")


def _write_lines(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    return _write_each(rows, columns, file, lambda row: _without(row[0], columns[0], "\n"))


def _write_each(rows: Rows, columns: Sequence[str], file: IO[bytes], line: Callable[[Sequence[object]], str]) -> int:
    """Write ``line(row)`` for every row, and return their number."""
    count = 0
    for row in rows:
        try:
            file.write((line(row) + "\n").encode())
        except UNWRITABLE as error:
            raise _refused(error, columns, row) from error
        count += 1
    return count


class _LineFeeds:
    """A file that writes LF for CRLF: csv quotes only the characters of its line terminator, so it must use both."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        """Write a row, given with CRLF."""
        return self._file.write(row[: -len("\r\n")] + "\n")


def _write_csv(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(_LineFeeds(text), lineterminator="\r\n")
        count = -1
        for row in chain([columns], rows):
            try:
                writer.writerow(["" if value is None else value for value in row])
            except UNWRITABLE as error:
                raise _refused(error, columns, row) from error
            count += 1
        return count
    finally:
        text.detach()  # the caller closes the file


def _write_tsv(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    def line(row: Sequence[object]) -> str:
        values = ("" if value is None else value for value in row)
        return "\t".join(_without(value, name, "\t\n\r") for value, name in zip(values, columns, strict=True))

    _write_each([columns], columns, file, line)
    return _write_each(rows, columns, file, line)


def _without(value: object, column: str, marks: str) -> str:
    """A value as text; raises an error if it contains a separator of the format."""
    text = str(value)
    for mark in marks:
        if mark in text:
            raise InputError(
                f"A value of {column!r} contains a {'tab' if mark == chr(9) else 'line break'}: {text[:40]!r}.",
                hint="Write csv, jsonl or parquet instead.",
            )
    return text


def _refused(error: Exception, columns: Sequence[str], row: Sequence[object]) -> InputError:
    """The error for a row with a value that the format cannot store."""
    if isinstance(error, InputError):
        return error
    return InputError(
        f"Cannot write a row ({', '.join(map(str, columns))}: {shown(list(row), 80)}): {error}.",
        hint="Remove the value, or write another format.",
    )


def _write_jsonl(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    return _write_each(
        rows, columns, file, lambda row: json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
    )


def _write_parquet(rows: Rows, columns: Sequence[str], file: IO[bytes]) -> int:
    arrow = require("pyarrow", extra="tables", feature="Writing parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Writing parquet")
    held = list(rows)  # the type of a column depends on all values: the first may be empty
    arrays = []
    for index, name in enumerate(columns):
        try:
            arrays.append(arrow.array([row[index] for row in held]))
        except (arrow.ArrowException, *UNWRITABLE) as error:
            raise InputError(f"The values of {name!r} have no type in common: {error}", hint="Write jsonl.") from error
    parquet.write_table(arrow.table(arrays, names=list(columns)), file, row_group_size=ROW_GROUP)
    return len(held)


ROW_WRITERS: dict[str, Callable[[Rows, Sequence[str], IO[bytes]], int]] = {
    "lines": _write_lines,
    "csv": _write_csv,
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
