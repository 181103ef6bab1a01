"""Import the rows of a file into a collection: which columns mean what, in batches that a kill cannot halve."""

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
from twinvec.collection.model import given_model
from twinvec.collection.rows import checked_rows, own_id
from twinvec.collection.schema import column_kinds
from twinvec.collection.store import is_collection, locate
from twinvec.collection.write import Written
from twinvec.data.read import open_table
from twinvec.data.table import Row, check_columns, choose_column, text_of
from twinvec.embedder import Embedder, ModelLike, as_embedder
from twinvec.errors import InputError, RowError, shown

__all__ = ["USUAL_ID", "ImportSource", "Imported", "import_rows", "index_file"]

USUAL_ID = "id"
NUMBERS: dict[str, Callable[[str], float]] = {"int": int, "float": float}
BATCH_ROWS = 4096  # written in one commit: what a kill can cost
TIDY_SHARE = 0.05  # so many new texts are worth going through all


@dataclass(frozen=True, slots=True)
class ImportSource:
    """A file of lines, csv, tsv, jsonl or parquet, or ``-`` for standard input, and which of its columns mean what.

    ``column`` has the texts; by default the only one, or text, sentence or content. ``id_column`` has the ids; by
    default ``id``, if there is one. ``metadata`` are the columns to keep beside them; None keeps all others. Texts in
    the columns ``numbers``, as csv has them, are read as numbers.
    """

    path: str
    column: str | None = None
    id_column: str | None = None
    metadata: tuple[str, ...] | None = None
    numbers: tuple[str, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. ``n_repeated`` rows had the text of a row before; the collection now holds ``n_texts``.

    ``seconds`` is the time of embedding and writing.
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
    language: str | None = "English",
    re_embed: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Imported:
    """Add the texts of a file to the collection at ``path``, which is made if it is not there; update changed ones.

    Only texts that the collection does not have yet are embedded. The first rows are checked before a collection is
    made. An existing collection keeps its model: without ``model`` that one is used, and another is refused.

    Args:
        source: a file's name, or an :class:`ImportSource` that says which columns to take.
        path: a folder, or an address such as s3://bucket/notes.
        arguments: of :func:`twinvec.load`, for the model that is named or the collection's own.
        default_model: what a new collection gets where ``model`` is None.
        language: of a new collection, as in ``Collection.create``.
        re_embed: where the collection has another model, embed all its texts again by this one.
        tell: gets a line before all texts are embedded again.

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
        batch.check(kinds)  # before a collection is made
    if is_collection(locate(path)):
        collection = _opened(path, model, arguments, re_embed=re_embed, tell=tell)
    else:
        chosen = _new_model(default_model if model is None else model, arguments)
        collection = Collection.create(path, model=chosen, language=language)
    return _written(collection, chain(first, batches), rows)


def import_rows(collection: Collection, source: str | PathLike[str] | ImportSource) -> Imported:
    """Add the rows of a file to a collection that is open."""
    rows = FileRows(source)
    return _written(collection, rows.batches(BATCH_ROWS, collection.columns), rows)


def _new_model(model: ModelLike | Embedder, arguments: Mapping[str, Any] | None) -> Embedder:
    if isinstance(model, (str, PathLike)):
        return as_embedder(model, arguments)
    if arguments:
        raise InputError("A model that is loaded takes no arguments.", hint="Give its name or folder with them.")
    return as_embedder(model)


def _opened(
    path: str | PathLike[str],
    model: ModelLike | Embedder | None,
    arguments: Mapping[str, Any] | None,
    *,
    re_embed: bool,
    tell: Callable[[str], None] | None,
) -> Collection:
    """The collection, of the model that was asked for."""
    collection = Collection.open(path)
    given = given_model(collection.model, collection.path, model, arguments)
    if given is None:
        return collection
    if re_embed and given.record.digest != collection.model.digest:
        if tell is not None:
            tell(f"Embedding all {len(collection):,} texts of {path} again by {given.record.name} ...")
        collection.reindex(given.embedder)
    return Collection.open(path, model=given.embedder)


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
    """Some rows, and where in the file they begin and end."""

    first: str = ""
    last: int = 0
    texts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    metadata: list[dict[str, object]] = field(default_factory=list)

    def check(self, kinds: Mapping[str, str]) -> None:
        """Refuse rows that a collection with these columns of metadata would refuse."""
        with self._placed_errors():
            column_kinds(checked_rows(self.texts, self.ids, self.metadata).metadata, kinds)

    def upsert_into(self, collection: Collection) -> Written:
        """Write the rows; an error says where in the file they stand."""
        with self._placed_errors():
            return collection.upsert(self.texts, self.ids, self.metadata)

    @contextmanager
    def _placed_errors(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise InputError(
                f"{self.first} to {self.last}: {error.problem}", hint=f"{error.hint} Counted from the first of them."
            ) from error


class FileRows:
    """The rows of a file, each id once. The file and its columns are checked at once, so that errors show early."""

    def __init__(self, source: str | PathLike[str] | ImportSource) -> None:
        choice = source if isinstance(source, ImportSource) else ImportSource(str(source))
        self.n_repeated = 0
        self._kinds: dict[str, str] = dict.fromkeys(choice.numbers, "float")
        self._table = table = open_table(choice.path, format=choice.format)
        if not table.columns:
            raise InputError(f"{table.name} holds no texts.", hint="Give it at least one row.")
        self._text = choose_column(table.columns, choice.column, source=table.name)
        usual = USUAL_ID if USUAL_ID in table.columns and self._text != USUAL_ID else None
        self._id = choice.id_column or usual
        others = [name for name in table.columns if name not in (self._text, self._id)]
        self._metadata = others if choice.metadata is None else list(choice.metadata)
        wanted = [self._text, *([self._id] if self._id else []), *self._metadata]
        check_columns(table.columns, wanted, source=table.name)
        check_columns(wanted, [*choice.numbers, self._text], source=table.name)
        self._wanted = list(dict.fromkeys(wanted))
        self._seen: dict[str, int] = {}

    def batches(self, n_rows: int, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """All rows, so many at a time; ``kinds`` are what the collection's columns hold already."""
        self._kinds |= {name: kind for name, kind in kinds.items() if kind in NUMBERS}
        rows = self._different_rows()
        while part := list(islice(rows, n_rows)):
            batch = Batch(part[0][0].where, part[-1][0].number)
            for row, text, name in part:
                batch.texts.append(text)
                batch.ids.append(name)
                batch.metadata.append({column: self._value(row, column) for column in self._metadata})
            yield batch

    def _different_rows(self) -> Iterator[tuple[Row, str, str]]:
        """Every row with its text and its id. Without a column of ids, a text that repeats is one row."""
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
                    f"{row.where} has the id {name!r}, which {self._table.unit} {first} has too.",
                    hint="Make the ids different, or choose another column with --id-column.",
                )

    def _checked_id(self, row: Row) -> str:
        value = row.values[self._id or ""]
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            return str(value)
        raise RowError(f"{row.where}: the id is {shown(value, 40)}.", hint="Write a text or a whole number.")

    def _value(self, row: Row, column: str) -> object:
        value = row.values[column]
        if value == "":  # how csv writes that there is none
            return None
        read = NUMBERS.get(self._kinds.get(column, ""))
        if read is None or not isinstance(value, str):
            return value
        try:
            number = read(value)
        except ValueError:
            number = math.nan
        if isinstance(number, float) and not math.isfinite(number):
            raise RowError(f"{row.where}: {column!r} is {value!r:.40}, not a number.", hint="Correct it, or empty it.")
        return number
