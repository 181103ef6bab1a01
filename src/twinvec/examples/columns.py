"""Which columns of a file the roles are read from, and what to say when one is missing."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from twinvec.errors import InputError
from twinvec.examples.roles import find_kind
from twinvec.examples.source import DataSource
from twinvec.tables import Table
from twinvec.tables.columns import check_columns

__all__ = ["find_columns"]

# What others call the columns of a role. Only ever suggested, never read without being asked.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "premise": ("sentence1", "text1", "sentence_A"),
    "hypothesis": ("sentence2", "text2", "sentence_B"),
    "text1": ("sentence1", "sentence_A", "question1", "premise"),
    "text2": ("sentence2", "sentence_B", "question2", "hypothesis"),
    "label": ("gold_label", "is_duplicate", "class"),
    "score": ("similarity", "relatedness_score", "label"),
    "anchor": ("query", "question"),
    "positive": ("pos", "answer", "document"),
    "negative": ("neg", "hard_negative"),
    "text": ("sentence", "content"),
}


def find_columns(source: DataSource, table: Table) -> dict[str, tuple[str, ...]]:
    """The columns of each role, roles in the order of the kind; ``negative`` of ranked examples only if it has any."""
    kind = find_kind(source.kind)
    columns = {role: source.columns_of(role) for role in kind.roles if role != kind.many}
    is_free = kind.many in table.columns and (kind.many,) not in columns.values()
    if kind.many and (kind.many in source.columns or is_free):
        columns[kind.many] = source.columns_of(kind.many)
    missing = {role: column for role, names in columns.items() for column in names if column not in table.columns}
    if missing:
        raise _no_column(missing, source, table=table)
    check_columns(table.columns, [name for names in columns.values() for name in names], source=table.name)
    return columns


def _no_column(missing: dict[str, str], source: DataSource, *, table: Table) -> InputError:
    shown = ", ".join(
        f"{role} (mapped to {column!r})" if role in source.columns else role for role, column in missing.items()
    )
    free = [name for name in table.columns if name not in source.columns.values()]
    likely = {role: _likely(role, column, free=free) for role, column in missing.items()}
    recipe = ", ".join(f'{role} = "{column}"' for role, column in likely.items())
    options = " ".join(f"--columns {role}={column}" for role, column in likely.items())
    return InputError(
        f"{table.name} has no column for the role{'s' * (len(missing) > 1)} {shown} of {source.kind}; "
        f"its columns are: {', '.join(table.columns)}.",
        hint=f"Name it: columns = {{{recipe}}} in a recipe, {options} on the command line.",
    )


def _likely(role: str, column: str, *, free: Sequence[str]) -> str:
    """A column that may be the one meant, as an example to show; else a word in its place.

    >>> _likely("premise", "premise", free=["id", "sentence1", "sentence2"])
    'sentence1'
    """
    near = get_close_matches(column, free, n=1) or [name for name in OTHER_NAMES[role] if name in free]
    return near[0] if near else "COLUMN"
