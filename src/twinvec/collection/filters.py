"""Filters: conditions in SQL over the columns of a collection, checked before Lance sees them.

Only names are looked at here, so that a wrong one is answered with the nearest right one. Lance judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from twinvec.errors import InputError, UnknownNameError, shown

__all__ = ["check_filter", "names_in", "one_of"]

TOKENS = re.compile(
    r"""(?P<text>'(?:[^']|'')*')
    |(?P<quoted>`[^`]*`|"[^"]*")
    |(?P<number>\d[\w.]*)
    |(?P<word>[^\W\d]\w*)
    |(?P<bad>--|/\*|['`";])
    |(?P<sign>\S)""",
    re.VERBOSE,
)
KEYWORD = re.compile(
    "and|or|not|in|is|null|true|false|like|ilike|between|escape|cast|as|date|time|timestamp|interval|"
    "int|integer|bigint|smallint|float|double|real|decimal|string|varchar|boolean|bool|distinct|from",
    re.IGNORECASE,
)


def check_filter(where: str, columns: Collection[str]) -> str:
    """Return the condition, if it names only these columns; capitals do not count.

    >>> check_filter("year >= 1990 and lower(genre) in ('jazz', 'folk')", ["id", "year", "genre"])[:4]
    'year'
    """
    if not isinstance(where, str) or not where.strip():
        raise InputError(f"The filter is {shown(where)}.", hint="Write a condition, such as: year >= 1990.")
    known = {column.lower() for column in columns}
    for name in _names(where):
        if name.lower() not in known:
            raise UnknownNameError("column", name, columns, note="Texts stand in single quotes.")
    return where


def names_in(where: str) -> set[str]:
    """The columns that a checked condition names, in small letters.

    >>> sorted(names_in("Year >= 1990 and lower(`genre`) = 'jazz'"))
    ['genre', 'year']
    """
    return {name.lower() for name in _names(where)}


def _names(where: str) -> Iterator[str]:
    """Whatever must be a column: quoted names, and words that are no keyword, no function and no type."""
    tokens = [(match.lastgroup, match[0]) for match in TOKENS.finditer(where)]
    for (kind, token), (_, following) in pairwise([*tokens, ("end", "")]):
        if kind == "bad":
            raise InputError(
                f"The filter {where!r} holds {token!r}: a comment, a second statement, or a quote without end.",
                hint="Write one condition; texts stand in single quotes, and a quote within them is doubled: 'it''s'.",
            )
        if kind == "quoted":
            yield token[1:-1]
        elif kind == "word" and following != "(" and not KEYWORD.fullmatch(token):
            yield token


def one_of(column: str, values: Iterable[str]) -> str:
    """The condition that a column has one of these values.

    >>> one_of("id", ["a", "it's"])
    "id IN ('a', 'it''s')"
    """
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({listed})"
