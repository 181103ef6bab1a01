"""What a collection gives back: rows of its table as small objects, and the ways to read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinvec.collection.columns import OWN_COLUMNS
from twinvec.collection.filters import one_of
from twinvec.collection.lance_types import ArrowBatch, LanceTable
from twinvec.collection.schema import pyarrow
from twinvec.extras import require

__all__ = ["Entry", "Hit", "columns_to_read", "entry_of", "metadata_of", "rows_with"]

FEW_VALUES = 1000  # more are looked for by reading the whole column, which a list in a condition is slower than
BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of a collection; ``metadata`` has the columns that it has a value in."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A text that was found, and its score: higher is nearer."""

    id: str
    text: str
    score: float
    metadata: Mapping[str, Any] = field(default_factory=dict)


def columns_to_read(table: LanceTable) -> list[str]:
    """The columns that people see: id, text, and all metadata."""
    return ["id", "text", *(name for name in table.schema.names if name not in OWN_COLUMNS)]


def entry_of(row: Mapping[str, Any]) -> Entry:
    """An entry from a row as read."""
    return Entry(row["id"], row["text"], metadata_of(row))


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata in a row as read, whatever else was read with it.

    >>> metadata_of({"id": "1", "_score": 0.5, "year": 1990, "genre": None})
    {'year': 1990}
    """
    return {
        name: value
        for name, value in row.items()
        if name not in OWN_COLUMNS and not name.startswith("_") and value is not None
    }


def rows_with(table: LanceTable, column: str, values: Collection[str], columns: Sequence[str]) -> Iterator[ArrowBatch]:
    """Arrow batches of the rows whose ``column`` (id or text_hash) has one of the values.

    They have the ``columns`` asked for, that column, and ``_rowid``.
    """
    query = table.search().select([*dict.fromkeys([column, *columns])]).with_row_id(True)
    if len(values) <= FEW_VALUES:
        yield from query.where(one_of(column, values)).to_batches(batch_size=BATCH_ROWS) if values else ()
        return
    compute = require("pyarrow.compute", extra="search", feature="A collection")
    wanted = pyarrow().array(list(values), pyarrow().string())
    for batch in query.to_batches(batch_size=BATCH_ROWS):
        yield batch.filter(compute.is_in(batch[column], value_set=wanted))
