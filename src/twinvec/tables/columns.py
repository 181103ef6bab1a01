"""Which column holds the texts, and whether a row has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinvec.errors import InputError, UnknownNameError

__all__ = ["USUAL_COLUMNS", "choose_column", "text_of"]

USUAL_COLUMNS = ("text", "sentence", "content")


def choose_column(names: Sequence[str], column: str | None, *, source: str) -> str:
    """The column of the texts: the one asked for, the only one, or one with a usual name.

    >>> choose_column(["id", "sentence"], None, source="a.csv")
    'sentence'
    """
    if column is None:
        column = names[0] if len(names) == 1 else next((name for name in USUAL_COLUMNS if name in names), None)
    if column is None:
        raise InputError(
            f"{source} has {len(names)} columns, and none is called {', '.join(USUAL_COLUMNS[:-1])} or "
            f"{USUAL_COLUMNS[-1]}: {', '.join(names)}.",
            hint="Name the one with the texts (--column, or column= in Python).",
        )
    if column not in names:
        raise UnknownNameError("column", column, names)
    if list(names).count(column) > 1:
        raise InputError(f"{source} has several columns called {column!r}.", hint="Give each its own name.")
    return column


def text_of(row: Mapping[str, object], column: str, *, where: str) -> str:
    """The text in a column of one row.

    >>> text_of({"text": "Hello."}, "text", where="a.jsonl, line 1")
    'Hello.'
    """
    if column not in row:
        raise InputError(f"{where} has no column {column!r}, only: {', '.join(row) or 'nothing'}.")
    value = row[column]
    if not isinstance(value, str):
        shown = "null" if value is None else f"a {type(value).__name__} ({value!r:.40})"
        raise InputError(f"{where}: {column!r} is {shown}, not a text.", hint="Remove the row or write a string.")
    return value
