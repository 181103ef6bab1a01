"""The rows of a collection: checks of input, results, and filters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from twinvec.collection.indexes import ArrowBatch, LanceTable
from twinvec.collection.schema import OWN_COLUMNS, plain_values, pyarrow
from twinvec.errors import InputError, UnknownNameError, shown
from twinvec.extras import require
from twinvec.model.tokenizer import check_text, check_texts
from twinvec.vector_store import text_key

__all__ = [
    "Entry",
    "Hit",
    "Rows",
    "check_filter",
    "check_version",
    "checked_count",
    "checked_ids",
    "checked_rows",
    "columns_to_read",
    "entry_of",
    "metadata_of",
    "names_in",
    "one_of",
    "own_id",
    "rows_with",
]

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
    """Return the condition if it names only these columns, ignoring case.

    >>> check_filter("year >= 1990 and lower(genre) in ('jazz', 'folk')", ["id", "year", "genre"])[:4]
    'year'
    """
    if not isinstance(where, str) or not where.strip():
        raise InputError(f"The filter is {shown(where)}.", hint="Use a condition such as: year >= 1990.")
    known = {column.lower() for column in columns}
    for name in _names(where):
        if name.lower() not in known:
            raise UnknownNameError("column", name, columns, note="Put strings in single quotes.")
    return where


def names_in(where: str) -> set[str]:
    """The columns that a checked condition names, in lower case.

    >>> sorted(names_in("Year >= 1990 and lower(`genre`) = 'jazz'"))
    ['genre', 'year']
    """
    return {name.lower() for name in _names(where)}


def _names(where: str) -> Iterator[str]:
    """Yield the column names: quoted names, and words that are not a keyword, function or type."""
    tokens = [(match.lastgroup, match[0]) for match in TOKENS.finditer(where)]
    for (kind, token), (_, following) in pairwise([*tokens, ("end", "")]):
        if kind == "bad":
            raise InputError(
                f"The filter {where!r} contains {token!r}: a comment, a second statement, or an unclosed quote.",
                hint="Use one condition; put strings in single quotes, and double a quote inside them: 'it''s'.",
            )
        if kind == "quoted":
            yield token[1:-1]
        elif kind == "word" and following != "(" and not KEYWORD.fullmatch(token):
            yield token


def one_of(column: str, values: Iterable[str]) -> str:
    """The SQL condition that a column has one of these values.

    >>> one_of("id", ["a", "it's"])
    "id IN ('a', 'it''s')"
    """
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"


MAX_VERSION = 2**63 - 1
ID_CHARACTERS = 32  # of an id made from a text; 128 bits


@dataclass(frozen=True, slots=True)
class Rows:
    """Row ``i`` is ``ids[i]``, ``texts[i]``, ``keys[i]`` (the hash of the text), ``metadata[i]``. Ids are unique."""

    ids: list[str]
    texts: list[str]
    keys: list[str]
    metadata: list[dict[str, object]]


def own_id(text: str) -> str:
    """The default id of a text: the start of its hash, so equal texts have equal ids.

    >>> own_id("a cat")
    '51e467415607798220a3776f6ae1a2a0'
    """
    return text_key(text).hex()[:ID_CHARACTERS]


def checked_rows(
    texts: Iterable[str], ids: Iterable[str] | None, metadata: Iterable[Mapping[str, object]] | None
) -> Rows:
    """Return rows to write; errors name the index of a bad value."""
    if isinstance(texts, str):
        raise InputError(f"texts must be a list, got one text: {texts!r:.60}.", hint="Put it in a list.")
    if metadata is not None and (isinstance(metadata, (str, bytes, Mapping)) or not isinstance(metadata, Iterable)):
        raise InputError(
            f"metadata must be a list of dicts, got {shown(metadata)}.",
            hint='Pass one dict per text: [{"year": 1990}].',
        )
    checked = check_texts(texts)
    keys = [text_key(text).hex() for text in checked]
    names = [key[:ID_CHARACTERS] for key in keys] if ids is None else checked_ids(ids)
    rows = [{}] * len(checked) if metadata is None else [*metadata]
    for what, values in (("ids", names), ("metadata", rows)):
        if len(values) != len(checked):
            raise InputError(f"There are {len(checked)} texts but {len(values)} {what}.", hint="Pass one per text.")
    _check_unique(names, own=ids is None)
    return Rows(names, checked, keys, [plain_values(row, f"metadata[{index}]") for index, row in enumerate(rows)])


def checked_ids(ids: Iterable[str]) -> list[str]:
    """Return ids as a list of non-empty strings."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InputError(f"ids must be a list, got {shown(ids)}.", hint="Put a single id in a list.")
    names = [*ids]
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"ids[{index}] is {shown(name)}, of type {type(name).__name__}.", hint="Use str(id).")
        if not check_text(name, f"ids[{index}]"):
            raise InputError(f"ids[{index}] is empty.", hint="Use at least one character.")
    return names


def checked_count(name: str, value: object) -> int:
    """Return a positive Python or numpy integer, such as ``k``, as an int.

    >>> checked_count("k", 10)
    10
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} must be an integer, got {shown(value)}.")
    if value < 1:
        raise InputError(f"{name} must be at least 1, got {shown(value)}.")
    return int(value)


def check_version(version: object) -> None:
    """Refuse an impossible version number."""
    if version is not None and checked_count("version", version) > MAX_VERSION:
        raise InputError(f"There is no version {shown(version)}.", hint="Collection.versions lists them.")


def _check_unique(ids: Sequence[str], *, own: bool) -> None:
    seen: dict[str, int] = {}
    for index, name in enumerate(ids):
        first = seen.setdefault(name, index)
        if first != index and own:
            raise InputError(
                f"texts[{first}] and texts[{index}] are equal, so they have the same default id.",
                hint="Pass ids to keep both, or remove one.",
            )
        if first != index:
            raise InputError(f"The id {name!r} appears twice, as ids[{first}] and ids[{index}].")


FEW_VALUES = 1000  # beyond this, reading the whole column is faster than a condition with a list
BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of a collection; ``metadata`` has the columns with a value."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result; a higher score is better."""

    id: str
    text: str
    score: float
    metadata: Mapping[str, Any] = field(default_factory=dict)


def columns_to_read(table: LanceTable) -> list[str]:
    """The columns that users see: id, text, and all metadata."""
    return ["id", "text", *(name for name in table.schema.names if name not in OWN_COLUMNS)]


def entry_of(row: Mapping[str, Any]) -> Entry:
    """The entry of a row of the table."""
    return Entry(row["id"], row["text"], metadata_of(row))


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a row of the table.

    >>> metadata_of({"id": "1", "_score": 0.5, "year": 1990, "genre": None})
    {'year': 1990}
    """
    return {
        name: value
        for name, value in row.items()
        if name not in OWN_COLUMNS and not name.startswith("_") and value is not None
    }


def rows_with(table: LanceTable, column: str, values: Collection[str], columns: Sequence[str]) -> Iterator[ArrowBatch]:
    """Yield Arrow batches of the rows whose ``column`` (id or text_hash) has one of the values.

    They have ``column``, the requested ``columns``, and ``_rowid``.
    """
    query = table.search().select([*dict.fromkeys([column, *columns])]).with_row_id(True)
    if len(values) <= FEW_VALUES:
        yield from query.where(one_of(column, values)).to_batches(batch_size=BATCH_ROWS) if values else ()
        return
    compute = require("pyarrow.compute", extra="search", feature="A collection")
    wanted = pyarrow().array(list(values), pyarrow().string())
    for batch in query.to_batches(batch_size=BATCH_ROWS):
        yield batch.filter(compute.is_in(batch[column], value_set=wanted))
