"""Texts that two files share, whatever their case, punctuation and white space."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from twinvec.errors import InputError, RowError
from twinvec.examples.roles import TEXT_ROLES
from twinvec.tables import open_table

__all__ = ["OtherTexts", "read_other_texts", "text_key"]


@dataclass(frozen=True, slots=True)
class OtherTexts:
    """The different texts of another file, by their keys: what it is called, and each text's key."""

    name: str
    keys: frozenset[str]


def text_key(text: str) -> str:
    """What is left of a text without case, punctuation and white space; tokenized texts equal the plain ones.

    >>> text_key("It 's  a dog .") == text_key("it's a Dog")
    True
    """
    return text.casefold().translate(_dropped())


@cache
def _dropped() -> dict[int, None]:
    """Characters of no weight: punctuation (P), separators (Z), white space, and the backtick, an old opening quote."""
    points = range(sys.maxunicode + 1)
    return {
        point: None
        for point in points
        if unicodedata.category(chr(point))[0] in "PZ" or chr(point).isspace() or chr(point) == "`"
    }


def read_other_texts(path: str | Path, *, also: Collection[str] = ()) -> OtherTexts:
    """The texts of a file: of the columns named as a role or as in ``also``, or else of all that hold strings."""
    table = open_table(path)
    named = [column for column in table.columns if column in TEXT_ROLES or column in also]
    columns = named or table.columns
    keys: set[str] = set()
    for row in table.rows(columns) if columns else ():
        if isinstance(row, RowError):
            raise row
        for value in row.values.values():
            values = value if isinstance(value, list) else [value]
            keys.update(text_key(each) for each in values if isinstance(each, str))
    keys.discard("")
    if not keys:
        raise InputError(f"{table.name} holds no texts to compare with.", hint="Give a file with columns of texts.")
    return OtherTexts(Path(path).name, frozenset(keys))
