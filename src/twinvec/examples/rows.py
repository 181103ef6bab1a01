"""One row of a file to one example: its texts in the order of the roles, and its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from twinvec.examples.roles import find_kind
from twinvec.examples.source import DataSource
from twinvec.examples.values import TARGETS, one_text, texts_of
from twinvec.tables import Row

__all__ = ["Example", "Target", "row_parser"]

Target: TypeAlias = str | float | None  # the name of a class; a score or a mark; or there is none


class Example(NamedTuple):
    """The texts of one row, roles in the order of the kind, and its target as the file has it."""

    texts: list[str]
    target: Target


def row_parser(source: DataSource, columns: Mapping[str, tuple[str, ...]]) -> Callable[[Row], Example | None]:
    """A function from a row to its example; None for a row that is to be ignored.

    >>> parse = row_parser(DataSource("a.csv", "texts"), {"text": ("text",)})
    >>> parse(Row("a.csv, line 2", {"text": "A cat."}, 2))
    Example(texts=['A cat.'], target=None)
    """
    kind = find_kind(source.kind)
    single = [columns[role][0] for role in kind.texts]
    several = columns.get(kind.many, ()) if kind.many else ()
    target_column = columns[kind.target][0] if kind.target else ""
    target_of = TARGETS[kind.values] if kind.values else None

    def parse(row: Row) -> Example | None:
        target: Target = None
        if target_of is not None:
            target = target_of(row.values[target_column], source, where=row.where)
            if target is None:
                return None
        texts = [one_text(row.values[column], column, where=row.where) for column in single]
        for column in several:
            texts += texts_of(row.values[column], column, where=row.where)
        return Example(texts, target)

    return parse
