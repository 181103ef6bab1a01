"""Vectors to a file, one row at a time: npy, jsonl or parquet."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from twinvec.errors import InputError
from twinvec.tables.formats import write_format
from twinvec.tables.parquet import write_parquet
from twinvec.tables.target import new_file
from twinvec.types import Array

__all__ = ["jsonl_row", "npy_header", "write_vectors"]

HEADER_BYTES = 128  # magic 6, version 2, length 2, and a dict padded to fill the rest


def write_vectors(rows: Iterable[tuple[str, Array]], target: str | Path, *, replace: bool = False) -> int:
    """Write texts with their vectors, each ``(width,)``, in the format of the ending; returns their number.

    ``.npy`` holds the vectors alone, ``(n, width)``; ``.jsonl`` and ``.parquet`` hold ``text`` and
    ``vector``. Rows are not gathered in memory, and a file appears only when all of them are on the disk.
    """
    write = WRITERS[write_format(str(target))]
    with new_file(Path(target), replace=replace) as file:
        return write(_at_least_one(rows, target), file)


def _at_least_one(rows: Iterable[tuple[str, Array]], target: str | Path) -> Iterator[tuple[str, Array]]:
    row = None
    for row in rows:
        yield row
    if row is None:
        raise InputError(f"There are no vectors to write to {target}.")


def jsonl_row(text: str, vector: Array) -> bytes:
    """One line of JSON. Nine digits give back the same float32.

    >>> jsonl_row("Hi.", np.array([0.1, -2.0], dtype=np.float32))
    b'{"text": "Hi.", "vector": [0.100000001, -2]}\\n'
    """
    numbers = ", ".join(["%.9g"] * len(vector)) % tuple(vector.tolist())
    return f'{{"text": {json.dumps(text, ensure_ascii=False)}, "vector": [{numbers}]}}\n'.encode()


def npy_header(dtype: np.dtype[np.generic], shape: tuple[int, int]) -> bytes:
    """The first 128 bytes of an ``.npy`` file, format 1.0; the same length for any count of rows.

    >>> len(npy_header(np.dtype(np.float32), (7, 384)))
    128
    """
    fields = repr({"descr": dtype.str, "fortran_order": False, "shape": shape})
    body = fields.ljust(HEADER_BYTES - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body.encode("ascii")


def write_npy(rows: Iterable[tuple[str, Array]], file: IO[bytes]) -> int:
    """Write the vectors after a header whose count is put in at the end."""
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


WRITERS: dict[str, Callable[[Iterable[tuple[str, Array]], IO[bytes]], int]] = {
    "npy": write_npy,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
}
