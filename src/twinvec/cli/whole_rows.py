"""Whole rows of a file for commands that write some of them again: their texts, and all their columns."""

from __future__ import annotations

from dataclasses import dataclass

from twinvec.cli.options import TextSource

__all__ = ["WholeRows", "read_whole_rows"]


@dataclass(frozen=True, slots=True)
class WholeRows:
    """The texts of a file, and beside each the values of all columns."""

    texts: list[str]
    columns: tuple[str, ...]
    values: list[list[object]]
    format: str


def read_whole_rows(source: TextSource) -> WholeRows:
    """All rows of the file; refuses one without rows, and a row without a text."""
    from twinvec.errors import InputError
    from twinvec.tables import open_table, read_format
    from twinvec.tables.columns import choose_column, text_of

    format = read_format(source.file, source.format)
    if source.column is not None and format == "lines":
        raise InputError(f"Plain lines have no columns, so there is no column {source.column!r}.")
    table = open_table(source.file, format=source.format)
    if not table.columns:
        raise InputError(f"{table.name} holds no texts.", hint="Give it at least one row.")
    column = choose_column(table.columns, source.column, source=table.name)
    texts, values = [], []
    for row in table.rows(table.columns):
        if isinstance(row, Exception):
            raise row
        texts.append(text_of(row.values[column], column, where=row.where))
        values.append(list(row.values.values()))
    if not texts:
        raise InputError(f"{table.name} holds no texts.", hint="Give it at least one row.")
    return WholeRows(texts, table.columns, values, format)
