"""A persistent collection of texts, searched by meaning, by words, or by both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from twinvec.choices import CANDIDATES, DEFAULT_MODEL, SEARCH_MODES, SearchMode
from twinvec.collection.indexes import LanceTable, check_language, has_index, lance_errors
from twinvec.collection.model import (
    CollectionModel,
    ModelRecord,
    as_model,
    model_mismatch,
    recorded_model,
    requested_model,
)
from twinvec.collection.rows import (
    Entry,
    Hit,
    Rows,
    check_version,
    checked_count,
    checked_ids,
    checked_rows,
    columns_to_read,
    entry_of,
    rows_with,
)
from twinvec.collection.schema import Header, kinds_of_schema, pyarrow
from twinvec.collection.search import (
    dense_hits,
    filter_errors,
    fused_hits,
    reranked_hits,
    text_hits,
    usable_filter,
)
from twinvec.collection.store import Store, create_store, locate
from twinvec.collection.write import (
    Plan,
    VectorPool,
    Written,
    check_absent,
    commit_rows,
    delete_ids,
    maintain,
    measure_recall,
    plan_rows,
    re_embed,
    rebuild,
)
from twinvec.embedder import Embedder, ModelLike
from twinvec.errors import CollectionError, InputError, check_at_least, check_name
from twinvec.model.tokenizer import check_text
from twinvec.pairs.cross_encoder import ScorerLike, as_scorer

if TYPE_CHECKING:
    from twinvec.collection.import_file import Imported, ImportSource

__all__ = ["Collection", "Reindexed", "Version"]

BATCH_ROWS = 4096
RECALL_AT, RECALL_QUERIES = 10, 100


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a collection: its number, when it was written, and how many texts it holds."""

    number: int
    written: datetime
    n_texts: int


@dataclass(frozen=True, slots=True)
class Reindexed:
    """The result of reindexing. ``index`` is flat (compares all vectors) or ivf (searches the nearest cells).

    ``recall`` is the share of the true ten nearest neighbors that a search finds, over a sample.
    """

    n_texts: int
    n_embedded: int
    index: str
    recall: float


class Collection:
    """Texts with ids, metadata and vectors, in a folder or an object store. Use ``create`` or ``open``.

    Ids are unique. Every write is atomic, and a search sees one version of the collection. Any number of threads and
    processes may search; writers take turns.

    >>> import tempfile
    >>> notes = Collection.create(tempfile.mkdtemp() + "/notes", model="twinvec-static")
    >>> notes.add(["a cat sleeps", "stocks fell"], ids=["pets", "money"]).n_added
    2
    >>> notes.search("a sleeping kitten", k=1)[0].id
    'pets'
    """

    def __init__(self, store: Store, model: CollectionModel | None, version: int | None = None) -> None:
        self._store = store
        self._own = model
        self._loading = Lock()
        self._version = version

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        model: ModelLike | Embedder = DEFAULT_MODEL,
        language: str | None = "English",
        storage: dict[str, str] | None = None,
    ) -> Collection:
        """Create an empty collection. The path must not exist.

        Args:
            path: A folder, or an address such as s3://bucket/notes.
            model: The model that embeds its texts: a name or folder as in :func:`twinvec.load`, or an encoder.
            language: The language for stemming words in text search; None matches words exactly. Of Korean, Japanese
                and Chinese, parts of words are found.
            storage: Options of the object store.
        """
        check_language(language)
        location = locate(path, storage)
        chosen = as_model(model)
        return cls(create_store(location, Header(chosen.record, language)), chosen)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        model: ModelLike | Embedder | None = None,
        arguments: Mapping[str, Any] | None = None,
        version: int | None = None,
        storage: dict[str, str] | None = None,
    ) -> Collection:
        """Open a collection; with ``version``, an earlier version, read-only.

        Its model is loaded when a text must be embedded, and only if it is on this machine: a collection, which may
        come from someone else, cannot start a download. Pass ``model`` to allow a download, if it has moved, or if it
        is already loaded; a model with different content is refused. ``arguments`` are those of :func:`twinvec.load`.
        """
        check_version(version)
        opened = cls(Store(locate(path, storage)), None, version)
        header = opened._header(opened._table())
        opened._own = requested_model(header.model, opened.path, model, arguments)
        opened._check_model(header)
        return opened

    def __repr__(self) -> str:
        return f"Collection({self.path!r})"

    def __len__(self) -> int:
        return int(self._table().count_rows())

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries of the current version, read in batches, in arbitrary order."""
        table = self._table()
        with lance_errors(f"read {self.path}"):
            for batch in table.search().select(columns_to_read(table)).to_batches(batch_size=BATCH_ROWS):
                yield from map(entry_of, batch.to_pylist())

    @property
    def path(self) -> str:
        """The folder or address."""
        return self._store.location.uri

    @property
    def model(self) -> ModelRecord:
        """The record of the model: ``name``, ``digest``, ``width``, ``similarity``, ``settings``."""
        return self._header(self._table()).model

    @property
    def columns(self) -> dict[str, str]:
        """The metadata columns and their types: bool, int, float, text, datetime or date."""
        return kinds_of_schema(self._table().schema, pyarrow())

    def add(
        self,
        texts: Iterable[str],
        ids: Iterable[str] | None = None,
        metadata: Iterable[Mapping[str, object]] | None = None,
    ) -> Written:
        """Add texts. If an id already exists, raise an error and add nothing.

        Args:
            ids: One per text. By default, the id is a hash of the text, so each text is stored once.
            metadata: One dict per text. The first value in a column sets the type of the column.
        """
        return self._write(checked_rows(texts, ids, metadata), replaces=False)

    def upsert(
        self,
        texts: Iterable[str],
        ids: Iterable[str] | None = None,
        metadata: Iterable[Mapping[str, object]] | None = None,
    ) -> Written:
        """Add texts, or replace texts and metadata of existing ids. Arguments as in ``add``.

        Texts that the collection already has, under any id, are not embedded again.
        """
        return self._write(checked_rows(texts, ids, metadata), replaces=True)

    def import_file(self, source: str | os.PathLike[str] | ImportSource) -> Imported:
        """Upsert the rows of a file, a few thousand per write. Pass a file name, or an ``ImportSource`` with columns.

        A row is identified by its id, or by its text if there is no id column. After a crash, repeat the call to
        continue. :func:`twinvec.index_file` also creates the collection, once the first rows are checked.
        """
        from twinvec.collection.import_file import import_rows  # which imports this module

        return import_rows(self, source)

    def delete(self, ids: Iterable[str] | None = None, *, where: str | None = None) -> int:
        """Delete texts by id, or all texts that match a condition. Returns the number of deleted texts."""
        if (ids is None) == (where is None):
            raise InputError("Pass either ids or where.", hint="delete(['a', 'b']) or delete(where=\"year < 1990\").")
        names = None if ids is None else checked_ids(ids)
        self._check_writable()
        with self._store.writing() as table:
            condition = usable_filter(table, where)
            with lance_errors(f"write to {self.path}"):
                if names is not None:
                    return delete_ids(table, names)
                with filter_errors(table, condition):
                    return int(table.delete(condition).num_deleted_rows)

    def get(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Return entries by id; unknown ids are left out."""
        names, table = checked_ids(ids), self._table()
        with lance_errors(f"read {self.path}"):
            batches = rows_with(table, "id", names, columns_to_read(table))
            found = {row["id"]: entry_of(row) for batch in batches for row in batch.to_pylist()}
        return {name: found[name] for name in names if name in found}

    def page(self, limit: int = 20, *, offset: int = 0, where: str | None = None) -> list[Entry]:
        """Up to ``limit`` entries after the first ``offset``, in an arbitrary order that a write may change.

        ``where`` is an SQL condition as in ``search``.
        """
        limit, table = checked_count("limit", limit), self._table()
        check_at_least(0, offset=offset)
        condition = usable_filter(table, where)
        with lance_errors(f"read {self.path}"), filter_errors(table, condition):
            query = table.search().select(columns_to_read(table)).limit(limit).offset(offset)
            rows = (query if condition is None else query.where(condition)).to_list()
        return [entry_of(row) for row in rows]

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        mode: SearchMode = "dense",
        where: str | None = None,
        rerank: ScorerLike | None = None,
        candidates: int = CANDIDATES,
    ) -> list[Hit]:
        """The ``k`` best texts for a query, best first; fewer if fewer match.

        Args:
            mode: dense (by meaning; the score is the model's similarity), text (by words; BM25), or hybrid (both
                rankings joined by reciprocal rank fusion).
            where: An SQL condition over id, text and the metadata columns, such as "year >= 1990".
            rerank: How to sort the candidates: a scorer, the folder or name of a cross- or poly-encoder (loaded in
                every call), or a function of the query and a list of texts that returns a score for each.
            candidates: The number of texts per ranking that are fused or passed to ``rerank``.
        """
        check_text(query, "query")
        k, candidates = checked_count("k", k), checked_count("candidates", candidates)
        scorer = None if rerank is None else as_scorer(rerank)
        check_name("mode", mode, SEARCH_MODES)
        table = self._table() if mode == "dense" else self._table_with_words()
        where = usable_filter(table, where)
        depth = k if scorer is None and mode != "hybrid" else max(k, candidates)
        rankings: list[list[Hit]] = []
        if mode != "text":
            model = self._loaded(self._header(table))
            rankings.append(dense_hits(table, model.query(query), depth, model=model.record, where=where))
        if mode != "dense":
            rankings.append(text_hits(table, query, depth, where=where))
        hits = fused_hits(rankings) if mode == "hybrid" else rankings[0]
        if scorer is not None:
            hits = reranked_hits(table, hits[:depth], query, scorer, model=self._header(table).model)
        return hits[:k]

    def reindex(self, model: ModelLike | Embedder | None = None) -> Reindexed:
        """Rebuild all indexes; with a ``model``, first embed all texts again with it. Other writers wait.

        Searches continue on the previous version. After a kill while embedding, repeat the call to continue.
        """
        self._check_writable()
        chosen = None if model is None else as_model(model)
        n_embedded = 0
        with self._store.writing() as table:
            if chosen is not None and chosen.record.digest != self._header(table).model.digest:
                n_embedded = re_embed(self._store, table, chosen)
                table = self._table()
            self._own = chosen or self._own
            header = self._header(table)
            with lance_errors(f"reindex {self.path}"):
                rebuild(table, header)
                recall = measure_recall(table, header, k=RECALL_AT, n_queries=RECALL_QUERIES)
                index = "ivf" if has_index(table, "vector") else "flat"
                return Reindexed(table.count_rows(), n_embedded, index, recall)

    def tidy(self) -> None:
        """Update the indexes and join small files now. Writing does this automatically, but not every time."""
        self._check_writable()
        with self._store.writing() as table, lance_errors(f"tidy {self.path}"):
            table.optimize()

    def versions(self) -> list[Version]:
        """The versions that can be opened, oldest first. Joining files removes versions older than a week."""
        with lance_errors(f"read {self.path}"):
            found = self._table().list_versions()
        return [Version(each["version"], each["timestamp"], int(each["metadata"]["total_rows"])) for each in found]

    def _write(self, rows: Rows, *, replaces: bool) -> Written:
        self._check_writable()
        table = self._table()
        header = self._header(table)
        pool = VectorPool(lambda texts: self._loaded(header).documents(texts))
        plan = self._plan(table, rows, pool, replaces=replaces)
        if plan.changed:
            with self._store.writing() as table:
                self._check_same(header, self._header(table))
                if table.version != plan.version:  # another writer was faster
                    plan = self._plan(table, rows, pool, replaces=replaces)
                if plan.changed:
                    commit_rows(table, rows, plan, pool, replaces=replaces)
                    maintain(table, header)
        n_added, n_replaced = len(plan.added), len(plan.replaced)
        return Written(tuple(rows.ids), n_added, n_replaced, len(rows.ids) - n_added - n_replaced, pool.n_embedded)

    def _plan(self, table: LanceTable, rows: Rows, pool: VectorPool, *, replaces: bool) -> Plan:
        with lance_errors(f"read {self.path}"):
            plan = plan_rows(table, rows)
        if not replaces:
            check_absent(rows, plan, self.path)
        pool.fill(table, rows, plan.changed)
        return plan

    def _table(self) -> LanceTable:
        return self._store.table(self._version)

    def _table_with_words(self) -> LanceTable:
        """The table with its full-text index, which is missing if a run was killed while reindexing."""
        table = self._table()
        with lance_errors(f"read {self.path}"):
            is_whole = has_index(table, "text")
        if is_whole or self._version is not None:
            return table
        with self._store.writing() as newest:
            maintain(newest, self._header(newest))
        return self._table()

    def _header(self, table: LanceTable) -> Header:
        return self._store.header(table)

    def _loaded(self, header: Header) -> CollectionModel:
        """The model, if it matches the header of a version."""
        with self._loading:
            if self._own is None:
                self._own = recorded_model(header.model, self.path)
        self._check_model(header)
        return self._own

    def _check_model(self, header: Header) -> None:
        if self._own is not None and self._own.record.digest != header.model.digest:
            raise model_mismatch(self.path, header.model, self._own.record.name)

    def _check_same(self, before: Header, now: Header) -> None:
        if before.model.digest != now.model.digest:
            raise CollectionError(
                f"{self.path} was just embedded again with the model {now.model.name!r}; nothing was written.",
                hint="Try again.",
            )

    def _check_writable(self) -> None:
        if self._version is not None:
            raise InputError(
                f"{self.path} is open at version {self._version}, which is read-only.",
                hint="Open it without a version.",
            )
