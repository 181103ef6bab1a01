"""Write to a collection: add and update texts, embed them again with another model, maintain indexes."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from twinvec.collection.indexes import (
    ArrowBatch,
    ArrowSchema,
    ArrowTable,
    LanceTable,
    can_index,
    has_index,
    is_lance_error,
    lance_errors,
    make_text_index,
    make_value_indexes,
    make_vector_index,
    reason_of,
)
from twinvec.collection.model import CollectionModel
from twinvec.collection.rows import Rows, metadata_of, one_of, rows_with
from twinvec.collection.schema import Header, arrow_type, column_kinds, kinds_of_schema, pyarrow, table_schema
from twinvec.collection.search import dense_hits
from twinvec.collection.store import Store
from twinvec.errors import CollectionError, InputError
from twinvec.ownership import FolderKind, check_ours, mark, remove_ours
from twinvec.progress import Progress
from twinvec.types import Vectors
from twinvec.vector_store import VectorStore, embed_missing

__all__ = [
    "Plan",
    "VectorPool",
    "Written",
    "check_absent",
    "commit_rows",
    "delete_ids",
    "maintain",
    "measure_recall",
    "plan_rows",
    "re_embed",
    "rebuild",
]


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write: the ids of all its texts, and how many were added, replaced, or unchanged.

    ``n_embedded`` counts the texts that the model embedded; the vectors of all others were known.
    """

    ids: tuple[str, ...]
    n_added: int = 0
    n_replaced: int = 0
    n_unchanged: int = 0
    n_embedded: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that rows make to one version of a table: the indices of rows to write, and new columns."""

    version: int
    added: list[int]
    replaced: list[int]
    columns: dict[str, str]

    @property
    def changed(self) -> list[int]:
        """The indices of all rows to write."""
        return sorted([*self.added, *self.replaced])


def plan_rows(table: LanceTable, rows: Rows) -> Plan:
    """Compare rows with those of one version of a table."""
    known = kinds_of_schema(table.schema, pyarrow())
    columns = column_kinds(rows.metadata, known)
    stored = {
        row["id"]: (row["text_hash"], _comparable(metadata_of(row)))
        for batch in rows_with(table, "id", rows.ids, ["text_hash", *known])
        for row in batch.to_pylist()
    }
    added = [index for index, name in enumerate(rows.ids) if name not in stored]
    replaced = [
        index
        for index, (name, key, values) in enumerate(zip(rows.ids, rows.keys, rows.metadata, strict=True))
        if name in stored and stored[name] != (key, _comparable(values))
    ]
    return Plan(table.version, added, replaced, columns)


def _comparable(values: Mapping[str, object]) -> dict[str, object]:
    """Metadata with NaN as None, because NaN never equals NaN and would always count as changed.

    >>> _comparable({"a": float("nan")}) == _comparable({"a": float("nan")})
    True
    """
    return {name: None if value != value else value for name, value in values.items()}


def check_absent(rows: Rows, plan: Plan, path: str) -> None:
    """Refuse rows with existing ids."""
    taken = sorted({*range(len(rows.ids))} - {*plan.added})
    if taken:
        name, text = rows.ids[taken[0]], rows.texts[taken[0]]
        others = f" So do {len(taken) - 1} more of these ids." if len(taken) > 1 else ""
        raise InputError(
            f"The id {name!r} (of the text {text!r:.40}) already exists in {path}.{others}",
            hint="Use upsert to replace texts, or choose other ids.",
        )


class VectorPool:
    """Vectors by text hash: those in the table are reused, all others are embedded once."""

    def __init__(self, embed: Callable[[list[str]], Vectors]) -> None:
        self.n_embedded = 0
        self._embed = embed  # called only when a vector is missing, so the model is loaded only if needed
        self._store = VectorStore(None)

    def fill(self, table: LanceTable, rows: Rows, indices: Sequence[int]) -> None:
        """Get the vectors of the rows at these indices."""
        texts = [rows.texts[index] for index in indices]
        wanted = self._store.missing(texts)
        stored = _stored_vectors(table, [key.hex() for key in wanted])
        if stored:
            self._store.add([bytes.fromhex(key) for key in stored], np.stack(list(stored.values())))
        self.n_embedded += embed_missing(self._store, texts, self._embed, source="The model")

    def vectors(self, keys: Sequence[str]) -> Vectors:
        """The vectors of texts by hash, ``(len(keys), width)``."""
        return self._store.vectors(self._store.rows([bytes.fromhex(key) for key in keys]))


def _stored_vectors(table: LanceTable, keys: list[str]) -> dict[str, Vectors]:
    """The vectors that a table has for these text hashes, under any id."""
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
    """Write the changed rows of a plan for this version in one commit, after a commit that adds new columns."""
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
                with suppress(Exception):  # empty columns do no harm
                    table.drop_columns(list(plan.columns))
            raise
    if not replaces and result.num_inserted_rows != len(plan.added):  # only possible without a lock
        raise CollectionError(
            f"Another process added {len(plan.added) - result.num_inserted_rows} of these ids at the same time; "
            "the others were written.",
            hint="Use upsert to replace its texts.",
        )


def _arrow_rows(schema: ArrowSchema, rows: Rows, indices: Sequence[int], pool: VectorPool) -> ArrowTable:
    arrow = pyarrow()
    keys = [rows.keys[index] for index in indices]
    vectors = arrow.array(pool.vectors(keys).ravel(), arrow.float32())
    columns = {
        "id": [rows.ids[index] for index in indices],
        "text": [rows.texts[index] for index in indices],
        "text_hash": keys,
        "vector": arrow.FixedSizeListArray.from_arrays(vectors, schema.field("vector").type.list_size),
    }
    for name in schema.names[len(columns) :]:
        values = [rows.metadata[index].get(name) for index in indices]
        if schema.field(name).type == arrow.float64():  # Arrow accepts integers up to 2 ** 53 only
            values = [float(value) if isinstance(value, int) else value for value in values]
        columns[name] = values
    return arrow.table(columns, schema=schema)


def delete_ids(table: LanceTable, ids: Sequence[str]) -> int:
    """Delete rows by id in one commit, ignoring unknown ids; return how many were deleted."""
    found = [name for batch in rows_with(table, "id", ids, []) for name in batch["id"].to_pylist()]
    return int(table.delete(one_of("id", found)).num_deleted_rows) if found else 0


FOLDER = "re-embedding"
KIND = FolderKind(
    "twinvec-re-embedding-1",
    "a re-embedding",
    names=re.compile(r"[^/]{1,32}/(?:|[0-9a-f]{32}\.vectors|\.[0-9a-f]{32}\.vectors\.partial-[0-9a-f]+)"),
)
BATCH_ROWS = 4096


def re_embed(store: Store, table: LanceTable, model: CollectionModel) -> int:
    """Replace all vectors by those of another model; the caller holds the lock. Returns the texts embedded."""
    language = store.header(table).language
    if store.location.folder is None:
        with TemporaryDirectory() as temporary:
            return _re_embed(store, table, model, language, Path(temporary))
    folder = store.location.folder / FOLDER
    check_ours(folder, KIND)
    mark(folder, KIND)
    done = _re_embed(store, table, model, language, folder / model.record.digest[:32])
    with suppress(OSError):  # the collection is complete without it; files that are not ours stay
        remove_ours(folder, KIND)
    return done


def _re_embed(store: Store, table: LanceTable, model: CollectionModel, language: str | None, folder: Path) -> int:
    vectors = VectorStore(folder)
    n_embedded = 0
    with Progress(table.count_rows(), "embedding") as bar:
        for batch in _batches(table, ["text"]):
            texts = batch["text"].to_pylist()
            n_embedded += embed_missing(vectors, texts, model.documents, source=model.record.name)
            bar.advance(len(texts))
    schema = table_schema(Header(model.record, language), kinds_of_schema(table.schema, pyarrow()))
    store.overwrite(schema, _with_vectors(table, vectors, schema))
    return n_embedded


def _with_vectors(table: LanceTable, vectors: VectorStore, schema: ArrowSchema) -> Iterator[ArrowBatch]:
    arrow = pyarrow()
    others = [name for name in schema.names if name != "vector"]
    for batch in _batches(table, others):
        rows = vectors.rows([bytes.fromhex(key) for key in batch["text_hash"].to_pylist()])
        values = arrow.array(vectors.vectors(rows).ravel(), arrow.float32())
        lists = arrow.FixedSizeListArray.from_arrays(values, schema.field("vector").type.list_size)
        columns = [lists if name == "vector" else batch[name] for name in schema.names]
        yield arrow.RecordBatch.from_arrays(columns, schema=schema)


def _batches(table: LanceTable, columns: list[str]) -> Iterator[ArrowBatch]:
    with lance_errors("read the collection"):
        reader = table.search().select(columns).to_batches(batch_size=BATCH_ROWS)
    yield from reader


logger = logging.getLogger(__name__)

FLAT_ROWS = 100_000  # up to this size a search compares all vectors, which is exact
LEAST_UNINDEXED, UNINDEXED_SHARE = 5_000, 0.3
LEAST_FRAGMENTS, ROWS_PER_FRAGMENT = 64, 1_000
SEED = 0


def maintain(table: LanceTable, header: Header) -> None:
    """After a write, create missing indexes, and update them if enough has changed."""
    try:
        if not has_index(table, "text"):
            make_text_index(table, header.language)
        n_rows = table.count_rows()
        if n_rows > FLAT_ROWS:
            make_value_indexes(table)
            if can_index(header.model.metric) and not has_index(table, "vector"):
                make_vector_index(table, header.model.metric)
        n_unindexed = table.index_stats("text_idx").num_unindexed_rows
        if needs_optimize(n_rows, n_unindexed, table.stats()["fragment_stats"]["num_fragments"]):
            table.optimize()
    except BaseException as error:
        if not is_lance_error(error):
            raise
        logger.warning("The texts were written, but updating the indexes failed: %s.", reason_of(error))


def rebuild(table: LanceTable, header: Header) -> None:
    """Join the files, and rebuild all indexes that a table of this size needs."""
    table.optimize()
    make_text_index(table, header.language)
    is_large = table.count_rows() > FLAT_ROWS
    if is_large:
        make_value_indexes(table)
    if is_large and can_index(header.model.metric):
        make_vector_index(table, header.model.metric)
    elif has_index(table, "vector"):
        table.drop_index("vector_idx")


def needs_optimize(n_rows: int, n_unindexed: int, n_fragments: int) -> bool:
    """Whether to index new rows and join small files.

    Joining may rewrite all rows, so the limits grow with the number of rows to keep the cost per row low.

    >>> needs_optimize(9_000, 100, 3), needs_optimize(9_000, 6_000, 3), needs_optimize(1_000_000, 6_000, 200)
    (False, True, False)
    """
    return (
        n_unindexed > max(LEAST_UNINDEXED, n_rows * UNINDEXED_SHARE)
        or n_fragments > LEAST_FRAGMENTS + n_rows / ROWS_PER_FRAGMENT
    )


def measure_recall(table: LanceTable, header: Header, *, k: int, n_queries: int) -> float:
    """The recall at ``k`` of a search, over stored vectors as queries; 1 without an index."""
    n_rows = table.count_rows()
    if not has_index(table, "vector") or n_rows < 2:
        return 1.0
    offsets = np.random.default_rng(SEED).choice(n_rows, min(n_queries, n_rows), replace=False)
    rows = table.take_offsets(sorted(offsets.tolist())).select(["id", "vector"]).to_arrow()
    n_true = n_found = 0
    for own, vector in zip(rows["id"].to_pylist(), rows["vector"].to_pylist(), strict=True):
        true, found = (
            {hit.id for hit in dense_hits(table, vector, k + 1, model=header.model, is_exact=exact)} - {own}
            for exact in (True, False)
        )
        n_true += len(true)
        n_found += len(true & found)
    return n_found / n_true
