"""Import the rows of a file into a collection, in atomic batches."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from typing import Any

from twinvec.choices import DEFAULT_MODEL
from twinvec.collection.collection import Collection
from twinvec.collection.indexes import language_of
from twinvec.collection.model import LOADED_WITH_ARGUMENTS, requested_model
from twinvec.collection.rows import checked_rows, own_id
from twinvec.collection.schema import column_kinds
from twinvec.collection.store import is_collection, locate
from twinvec.collection.write import Written
from twinvec.data.read import open_table
from twinvec.data.table import Row, check_columns, choose_column, text_of
from twinvec.embedder import Embedder, ModelLike, as_embedder
from twinvec.errors import InputError, RowError, shown

__all__ = ["ImportSource", "Imported", "import_rows", "index_file"]

DEFAULT_ID = "id"
NUMBERS: dict[str, Callable[[str], float]] = {"int": int, "float": float}
BATCH_ROWS = 4096  # written in one commit, so a kill loses at most this many
AUTO = "auto"
LANGUAGE_ROWS = 200  # texts whose letters decide the language
TIDY_SHARE = 0.05  # share of new texts above which an import ends with a tidy


@dataclass(frozen=True, slots=True)
class ImportSource:
    """A file of lines, csv, tsv, jsonl or parquet, or ``-`` for standard input, and the roles of its columns.

    ``column`` holds the texts; by default the only column, or text, sentence or content. ``id_column`` holds the ids;
    by default ``id``, if it exists. ``metadata`` lists the columns to keep; None keeps all others. Strings in the
    columns ``numbers`` (csv has only strings) are parsed as numbers.
    """

    path: str
    column: str | None = None
    id_column: str | None = None
    metadata: tuple[str, ...] | None = None
    numbers: tuple[str, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import. ``n_repeated`` rows had the text of an earlier row; the collection holds ``n_texts``.

    ``seconds`` is the time spent embedding and writing.
    """

    n_added: int
    n_replaced: int
    n_unchanged: int
    n_embedded: int
    n_repeated: int
    n_texts: int
    seconds: float


def index_file(
    source: str | PathLike[str] | ImportSource,
    path: str | PathLike[str],
    model: ModelLike | Embedder | None = None,
    *,
    arguments: Mapping[str, Any] | None = None,
    default_model: ModelLike | Embedder = DEFAULT_MODEL,
    language: str | None = AUTO,
    re_embed: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Imported:
    """Add the texts of a file to the collection at ``path``, and update changed ones. Creates a missing collection.

    Only new texts are embedded. The first rows are checked before a collection is created. An existing collection
    keeps its model: ``model`` may be omitted, and a different one is refused.

    Args:
        source: A file name, or an :class:`ImportSource` that names the columns.
        path: A folder, or an address such as s3://bucket/notes.
        arguments: Arguments of :func:`twinvec.load`, for ``model`` or the collection's own model.
        default_model: The model of a new collection if ``model`` is None.
        language: The language of a new collection, as in ``Collection.create``; "auto" chooses Korean, Japanese or
            Chinese by the letters of the first texts, else English.
        re_embed: If the collection has a different model, embed all its texts again with this one.
        tell: Called with a message before all texts are embedded again.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "notes.txt")
    ...     _ = file.write_text("A cat sits.\\nRain falls.\\n")
    ...     done = index_file(file, f"{folder}/notes")
    >>> done.n_added, done.n_texts
    (2, 2)
    """
    rows = FileRows(source)
    kinds = Collection.open(path).columns if is_collection(locate(path)) else {}
    batches = rows.batches(BATCH_ROWS, kinds)
    first = list(islice(batches, 1))
    for batch in first:
        batch.check(kinds)  # before a collection is created
    if is_collection(locate(path)):
        collection = _opened(path, model, arguments, re_embed=re_embed, tell=tell)
    else:
        chosen = _new_model(default_model if model is None else model, arguments)
        if language == AUTO:
            language = language_of(text for batch in first for text in batch.texts[:LANGUAGE_ROWS])
        collection = Collection.create(path, model=chosen, language=language)
    return _written(collection, chain(first, batches), rows)


def import_rows(collection: Collection, source: str | PathLike[str] | ImportSource) -> Imported:
    """Add the rows of a file to an open collection."""
    rows = FileRows(source)
    return _written(collection, rows.batches(BATCH_ROWS, collection.columns), rows)


def _new_model(model: ModelLike | Embedder, arguments: Mapping[str, Any] | None) -> Embedder:
    if isinstance(model, (str, PathLike)):
        return as_embedder(model, arguments)
    if arguments:
        raise InputError(LOADED_WITH_ARGUMENTS, hint="Use its name or folder together with arguments.")
    return as_embedder(model)


def _opened(
    path: str | PathLike[str],
    model: ModelLike | Embedder | None,
    arguments: Mapping[str, Any] | None,
    *,
    re_embed: bool,
    tell: Callable[[str], None] | None,
) -> Collection:
    """The collection with the requested model."""
    collection = Collection.open(path)
    requested = requested_model(collection.model, collection.path, model, arguments)
    if requested is None:
        return collection
    if re_embed and requested.record.digest != collection.model.digest:
        if tell is not None:
            tell(f"Embedding all {len(collection):,} texts of {path} again with {requested.record.name} ...")
        collection.reindex(requested.embedder)
    return Collection.open(path, model=requested.embedder)


def _written(collection: Collection, batches: Iterable[Batch], rows: FileRows) -> Imported:
    started, done = time.perf_counter(), Counter[str]()
    for batch in batches:
        written = batch.upsert_into(collection)
        done.update(added=written.n_added, replaced=written.n_replaced, unchanged=written.n_unchanged)
        done.update(embedded=written.n_embedded)
    n_texts = len(collection)
    if done["added"] + done["replaced"] > n_texts * TIDY_SHARE:
        collection.tidy()
    return Imported(
        n_added=done["added"],
        n_replaced=done["replaced"],
        n_unchanged=done["unchanged"],
        n_embedded=done["embedded"],
        n_repeated=rows.n_repeated,
        n_texts=n_texts,
        seconds=time.perf_counter() - started,
    )


@dataclass(slots=True)
class Batch:
    """Some rows, and their first and last position in the file."""

    first: str = ""
    last: int = 0
    texts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    metadata: list[dict[str, object]] = field(default_factory=list)

    def check(self, kinds: Mapping[str, str]) -> None:
        """Refuse rows that a collection with these metadata columns would refuse."""
        with self._located_errors():
            column_kinds(checked_rows(self.texts, self.ids, self.metadata).metadata, kinds)

    def upsert_into(self, collection: Collection) -> Written:
        """Write the rows; errors name their position in the file."""
        with self._located_errors():
            return collection.upsert(self.texts, self.ids, self.metadata)

    @contextmanager
    def _located_errors(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            hint = f"{error.hint} Indices count from the first of these rows."
            raise InputError(f"{self.first} to {self.last}: {error.problem}", hint=hint) from error


class FileRows:
    """The rows of a file, each id once. The constructor checks the file and its columns, so errors appear early."""

    def __init__(self, source: str | PathLike[str] | ImportSource) -> None:
        choice = source if isinstance(source, ImportSource) else ImportSource(str(source))
        self.n_repeated = 0
        self._kinds: dict[str, str] = dict.fromkeys(choice.numbers, "float")
        self._table = table = open_table(choice.path, format=choice.format)
        if not table.columns:
            raise InputError(f"{table.name} has no texts.", hint="Use a file with at least one row.")
        self._text = choose_column(table.columns, choice.column, source=table.name)
        default_id = DEFAULT_ID if DEFAULT_ID in table.columns and self._text != DEFAULT_ID else None
        self._id = choice.id_column or default_id
        others = [name for name in table.columns if name not in (self._text, self._id)]
        self._metadata = others if choice.metadata is None else list(choice.metadata)
        wanted = [self._text, *([self._id] if self._id else []), *self._metadata]
        check_columns(table.columns, wanted, source=table.name)
        check_columns(wanted, [*choice.numbers, self._text], source=table.name)
        self._wanted = list(dict.fromkeys(wanted))
        self._seen: dict[str, int] = {}

    def batches(self, n_rows: int, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """Yield all rows in batches; ``kinds`` are the types of the collection's columns."""
        self._kinds |= {name: kind for name, kind in kinds.items() if kind in NUMBERS}
        rows = self._unique_rows()
        while part := list(islice(rows, n_rows)):
            batch = Batch(part[0][0].where, part[-1][0].number)
            for row, text, name in part:
                batch.texts.append(text)
                batch.ids.append(name)
                batch.metadata.append({column: self._value(row, column) for column in self._metadata})
            yield batch

    def _unique_rows(self) -> Iterator[tuple[Row, str, str]]:
        """Yield every row with its text and id. Without an id column, repeated texts are skipped."""
        for row in self._table.rows(self._wanted):
            if isinstance(row, RowError):
                raise row
            text = text_of(row.values[self._text], self._text, where=row.where)
            name = own_id(text) if self._id is None else self._checked_id(row)
            first = self._seen.setdefault(name, row.number)
            if first == row.number:
                yield row, text, name
            elif self._id is None:
                self.n_repeated += 1
            else:
                raise RowError(
                    f"{row.where} has the same id {name!r} as {self._table.unit} {first}.",
                    hint="Make the ids unique, or choose another column with --id-column.",
                )

    def _checked_id(self, row: Row) -> str:
        value = row.values[self._id or ""]
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            return str(value)
        raise RowError(f"{row.where}: the id is {shown(value, 40)}.", hint="Use a non-empty string or a whole number.")

    def _value(self, row: Row, column: str) -> object:
        value = row.values[column]
        if value == "":  # a missing value in csv
            return None
        read = NUMBERS.get(self._kinds.get(column, ""))
        if read is None or not isinstance(value, str):
            return value
        try:
            number = read(value)
        except ValueError:
            number = math.nan
        if isinstance(number, float) and not math.isfinite(number):
            raise RowError(f"{row.where}: {column!r} is {value!r:.40}, not a number.", hint="Correct or clear it.")
        return number
