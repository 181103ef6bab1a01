"""Which columns are wanted, whether the file has them, and whether a value is a text."""

from __future__ import annotations

from collections.abc import Sequence

from twinvec.errors import InputError, RowError, UnknownNameError, shown

__all__ = ["USUAL_COLUMNS", "check_columns", "choose_column", "text_of"]

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
    check_columns(names, [column], source=source)
    return column


def check_columns(names: Sequence[str], wanted: Sequence[str], *, source: str) -> None:
    """Refuse columns that the file does not have, or has twice.

    >>> check_columns(["id", "text"], ["text"], source="a.csv")
    """
    if isinstance(wanted, str) or not wanted:
        raise InputError(f"Columns must be a list of at least one name, got {wanted!r}.", hint='Write ["text"].')
    for column in wanted:
        if column not in names:
            raise UnknownNameError(f"column in {source}:", column, names)
        if list(names).count(column) > 1:
            raise InputError(f"{source} has several columns called {column!r}.", hint="Give each its own name.")


def text_of(value: object, column: str, *, where: str) -> str:
    """The value of a column, if it is a text.

    >>> text_of("Hello.", "text", where="a.jsonl, line 1")
    'Hello.'
    """
    if isinstance(value, str):
        return value
    told = "null" if value is None else f"a {type(value).__name__} ({shown(value, 40)})"
    raise RowError(
        f"{where}: {column!r} is {told}, not a text.", fault="no text", hint="Remove the row or write a string."
    )
