"""Texts into a collection: what has changed is planned against one version, embedded, and written in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from twinvec.collection.columns import arrow_type, column_kinds, kinds_of_schema
from twinvec.collection.entries import metadata_of, rows_with
from twinvec.collection.filters import one_of
from twinvec.collection.lance_errors import lance_errors
from twinvec.collection.lance_types import ArrowSchema, ArrowTable, LanceTable
from twinvec.collection.rows import Rows
from twinvec.collection.schema import pyarrow
from twinvec.errors import CollectionError, InputError
from twinvec.types import Vectors

__all__ = ["Plan", "VectorPool", "Written", "check_absent", "commit_rows", "delete_ids", "plan_rows"]


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did: the ids of all its texts, and how many of them were new, replaced, or there already.

    ``n_embedded`` counts texts that the model had to read; the vectors of all others were known.
    """

    ids: tuple[str, ...]
    n_added: int = 0
    n_replaced: int = 0
    n_unchanged: int = 0
    n_embedded: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What rows mean for one version of a table: the places of those to write, and columns that it lacks."""

    version: int
    added: list[int]
    replaced: list[int]
    columns: dict[str, str]

    @property
    def changed(self) -> list[int]:
        """Places of all rows to write."""
        return sorted([*self.added, *self.replaced])


def plan_rows(table: LanceTable, rows: Rows) -> Plan:
    """Compare rows with those that a version of a table has."""
    known = kinds_of_schema(table.schema, pyarrow())
    columns = column_kinds(rows.metadata, known)
    stored = {
        row["id"]: (row["text_hash"], _comparable(metadata_of(row)))
        for batch in rows_with(table, "id", rows.ids, ["text_hash", *known])
        for row in batch.to_pylist()
    }
    added = [place for place, name in enumerate(rows.ids) if name not in stored]
    replaced = [
        place
        for place, (name, key, values) in enumerate(zip(rows.ids, rows.keys, rows.metadata, strict=True))
        if name in stored and stored[name] != (key, _comparable(values))
    ]
    return Plan(table.version, added, replaced, columns)


def _comparable(values: Mapping[str, object]) -> dict[str, object]:
    """Metadata in which a NaN equals a NaN; by itself it equals nothing, and would count as changed every time.

    >>> _comparable({"a": float("nan")}) == _comparable({"a": float("nan")})
    True
    """
    return {name: None if value != value else value for name, value in values.items()}


def check_absent(rows: Rows, plan: Plan, place: str) -> None:
    """Refuse rows of which some ids are there already."""
    taken = sorted({*range(len(rows.ids))} - {*plan.added})
    if taken:
        others = f", and {len(taken) - 1} more of these," if len(taken) > 1 else ""
        raise InputError(
            f"The id {rows.ids[taken[0]]!r} (of the text {rows.texts[taken[0]]!r:.40}){others} is in {place} already.",
            hint="Use upsert to replace texts, or give other ids.",
        )


class VectorPool:
    """Vectors by the hash of their text: those of the table are used again, all others are embedded, once."""

    def __init__(self, embed: Callable[[list[str]], Vectors]) -> None:
        self.n_embedded = 0
        self._embed = embed  # called only when a vector is missing, so that the model need not be loaded for nothing
        self._vectors: dict[str, Vectors] = {}  # each (width,)

    def fill(self, table: LanceTable, rows: Rows, places: Sequence[int]) -> None:
        """Have the vectors of the rows at these places."""
        wanted = {rows.keys[place]: rows.texts[place] for place in places if rows.keys[place] not in self._vectors}
        self._vectors |= _stored_vectors(table, list(wanted))
        missing = {key: text for key, text in wanted.items() if key not in self._vectors}
        if missing:
            self._vectors |= dict(zip(missing, self._embed(list(missing.values())), strict=True))
            self.n_embedded += len(missing)

    def vectors(self, keys: Sequence[str]) -> Vectors:
        """Vectors of texts by their hashes, ``(len(keys), width)``."""
        return np.stack([self._vectors[key] for key in keys])


def _stored_vectors(table: LanceTable, keys: list[str]) -> dict[str, Vectors]:
    """The vectors of those texts that a table has, whatever their ids."""
    with lance_errors("read vectors of the collection"):
        rows: dict[str, int] = {}  # one of possibly many rows per text
        for batch in rows_with(table, "text_hash", keys, []):
            rows.update(zip(batch["text_hash"].to_pylist(), batch["_rowid"].to_pylist(), strict=True))
        if not rows:
            return {}
        found = table.take_row_ids(sorted(rows.values())).select(["text_hash", "vector"]).to_arrow()
    vectors = found["vector"].combine_chunks().flatten().to_numpy().reshape(len(found), -1)
    return dict(zip(found["text_hash"].to_pylist(), vectors, strict=True))


def commit_rows(table: LanceTable, rows: Rows, plan: Plan, pool: VectorPool, *, replaces: bool) -> None:
    """Write the changed rows of a plan for this version in one commit, and columns that are new in one before it."""
    arrow = pyarrow()
    new = [arrow.field(name, arrow_type(kind, arrow)) for name, kind in plan.columns.items()]
    schema = arrow.schema([*table.schema, *new], metadata=table.schema.metadata)
    data = _arrow_rows(schema, rows, plan.changed, pool)
    with lance_errors("write to the collection"):
        if new:
            table.add_columns(new)
        try:
            merge = table.merge_insert("id").when_not_matched_insert_all()
            result = (merge.when_matched_update_all() if replaces else merge).execute(data)
        except BaseException:
            if new:
                with suppress(Exception):  # columns without a value do no harm
                    table.drop_columns(list(plan.columns))
            raise
    if not replaces and result.num_inserted_rows != len(plan.added):  # only where there is no lock
        raise CollectionError(
            f"Another process has added {len(plan.added) - result.num_inserted_rows} of these ids at the same time; "
            "the others are in.",
            hint="Use upsert to replace its texts.",
        )


def _arrow_rows(schema: ArrowSchema, rows: Rows, places: Sequence[int], pool: VectorPool) -> ArrowTable:
    arrow = pyarrow()
    keys = [rows.keys[place] for place in places]
    vectors = arrow.array(pool.vectors(keys).ravel(), arrow.float32())
    columns = {
        "id": [rows.ids[place] for place in places],
        "text": [rows.texts[place] for place in places],
        "text_hash": keys,
        "vector": arrow.FixedSizeListArray.from_arrays(vectors, schema.field("vector").type.list_size),
    }
    for name in schema.names[len(columns) :]:
        values = [rows.metadata[place].get(name) for place in places]
        if schema.field(name).type == arrow.float64():  # Arrow takes whole numbers up to 2 ** 53 only
            values = [float(value) if isinstance(value, int) else value for value in values]
        columns[name] = values
    return arrow.table(columns, schema=schema)


def delete_ids(table: LanceTable, ids: Sequence[str]) -> int:
    """Remove rows by their ids in one commit; ids that are not there do not matter."""
    found = [name for batch in rows_with(table, "id", ids, []) for name in batch["id"].to_pylist()]
    return int(table.delete(one_of("id", found)).num_deleted_rows) if found else 0
