"""The columns of a data set's file, checked row by row; errors name the file and the line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from twinvec.errors import InputError, RowError
from twinvec.tables import Row, read_rows

__all__ = ["data_file", "numbers_in", "read_data", "text_in", "values_in"]

MAY_BE_EMPTY = ("text", "text1", "text2", "title")  # an empty text is a text

Value = TypeVar("Value")


def data_file(folder: str | Path, name: str) -> Path:
    """The file of a data set, such as ``sts/sts12``, packed or not; if it is missing, the error says how to get it."""
    for ending in (".tsv.gz", ".tsv"):
        path = Path(folder, name + ending)
        if path.is_file():
            return path
    raise InputError(
        f"There is no file {Path(folder, name)}.tsv.gz.",
        hint="Fetch it with: twinvec data get (or name the folder of the data sets in TWINVEC_DATA).",
    )


def read_data(folder: str | Path, name: str, *, columns: Sequence[str]) -> list[Row]:
    """All rows of the file of a data set, with some of its columns; none of the values may be empty."""
    rows = list(read_rows(data_file(folder, name), columns))
    for row in rows:
        for column, value in row.values.items():
            if value == "" and column not in MAY_BE_EMPTY:
                raise RowError(f"{row.where}: {column!r} is empty.", hint="Write the value or remove the row.")
    return rows


def text_in(rows: Sequence[Row], column: str) -> list[str]:
    """A column as it stands.

    >>> text_in([Row("a.tsv, line 2", {"text": "Hello."}, 2)], "text")
    ['Hello.']
    """
    return [str(row.values[column]) for row in rows]


def numbers_in(rows: Sequence[Row], column: str, *, low: float, high: float) -> list[float]:
    """A column of numbers within a range.

    >>> numbers_in([Row("a.tsv, line 2", {"score": "4.5"}, 2)], "score", low=0, high=5)
    [4.5]
    """
    numbers = []
    for row in rows:
        try:
            number = float(str(row.values[column]))
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise RowError(
                f"{row.where}: {column!r} is {row.values[column]!r}, not a number from {low:g} to {high:g}.",
                hint="Correct the value or remove the row.",
            )
        numbers.append(number)
    return numbers


def values_in(rows: Sequence[Row], column: str, *, known: Mapping[str, Value]) -> list[Value]:
    """A column with few known values, each as what it stands for.

    >>> values_in([Row("a.tsv, line 2", {"label": "HS"}, 2)], "label", known={"HS": 2.0, "NS": 0.0})
    [2.0]
    """
    for row in rows:
        if row.values[column] not in known:
            raise RowError(
                f"{row.where}: {column!r} is {row.values[column]!r}, not one of {', '.join(known)}.",
                hint="Correct the value or remove the row.",
            )
    return [known[str(row.values[column])] for row in rows]
