"""``twinvec index``: import the texts of a file into a collection."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from twinvec.choices import FORMATS
from twinvec.cli.options import ModelChoice, gathered, model_options
from twinvec.cli.screen import if_interrupted, say, show_seconds

if TYPE_CHECKING:
    from twinvec.collection import Collection, ModelRecord, Written
    from twinvec.collection.model import CollectionModel
    from twinvec.data.table import Row

__all__ = [
    "Batch",
    "FileRows",
    "RowChoice",
    "given_model",
    "index",
    "known_columns",
    "open_collection",
    "row_options",
]

USUAL_ID = "id"
NUMBERS: dict[str, Callable[[str], float]] = {"int": int, "float": float}


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which columns of a file mean what."""

    file: str
    column: str | None
    id_column: str | None
    metadata: tuple[str, ...]
    no_metadata: bool
    number: tuple[str, ...]
    format: str | None

    def __post_init__(self) -> None:
        if self.metadata and self.no_metadata:
            raise click.UsageError("Give --metadata or --no-metadata, not both.")


row_options = gathered(
    {
        "file": click.argument("file", metavar="FILE"),
        "column": click.option(
            "--text-column",
            "--column",
            "column",
            help="Column of the texts. Default: the only one, or text, sentence or content.",
        ),
        "id_column": click.option("--id-column", help=f"Column of the ids. Default: {USUAL_ID}, if there is one."),
        "metadata": click.option(
            "--metadata", multiple=True, metavar="COLUMN", help="Keep this column as metadata. Default: all others."
        ),
        "no_metadata": click.option("--no-metadata", is_flag=True, help="Keep no other column."),
        "number": click.option(
            "--number",
            multiple=True,
            metavar="COLUMN",
            help="Read the texts of this column, as csv has them, as numbers.",
        ),
        "format": click.option(
            "--format", type=click.Choice(FORMATS), help="Format of FILE. Default: by its ending; lines for '-'."
        ),
    },
    "rows",
    build=RowChoice,
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
        from twinvec.collection.rows import checked_rows
        from twinvec.collection.schema import column_kinds

        with self._placed_errors():
            column_kinds(checked_rows(self.texts, self.ids, self.metadata).metadata, kinds)

    def upsert_into(self, collection: Collection) -> Written:
        """Write the rows; an error says where in the file they stand."""
        with self._placed_errors():
            return collection.upsert(self.texts, self.ids, self.metadata)

    @contextmanager
    def _placed_errors(self) -> Iterator[None]:
        from twinvec.errors import InputError

        try:
            yield
        except InputError as error:
            raise InputError(
                f"{self.first} to {self.last}: {error.problem}", hint=f"{error.hint} Counted from the first of them."
            ) from error


class FileRows:
    """The rows of a file, each id once. The file and its columns are checked at once, so that errors show early."""

    def __init__(self, choice: RowChoice) -> None:
        from twinvec.data.read import open_table
        from twinvec.data.table import check_columns, choose_column
        from twinvec.errors import InputError

        self.n_repeated = 0
        self._kinds: dict[str, str] = dict.fromkeys(choice.number, "float")
        self._table = table = open_table(choice.file, format=choice.format)
        if not table.columns:
            raise InputError(f"{table.name} holds no texts.", hint="Give it at least one row.")
        self._text = choose_column(table.columns, choice.column, source=table.name)
        usual = USUAL_ID if USUAL_ID in table.columns and self._text != USUAL_ID else None
        self._id = choice.id_column or usual
        others = [name for name in table.columns if name not in (self._text, self._id)]
        self._metadata = [] if choice.no_metadata else list(choice.metadata or others)
        wanted = [self._text, *([self._id] if self._id else []), *self._metadata]
        check_columns(table.columns, wanted, source=table.name)
        check_columns(wanted, [*choice.number, self._text], source=table.name)
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
        from twinvec.collection import own_id
        from twinvec.data.table import text_of
        from twinvec.errors import RowError

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
        from twinvec.errors import RowError, shown

        value = row.values[self._id or ""]
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            return str(value)
        raise RowError(f"{row.where}: the id is {shown(value, 40)}.", hint="Write a text or a whole number.")

    def _value(self, row: Row, column: str) -> object:
        from twinvec.errors import RowError

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


def given_model(model: ModelChoice, record: ModelRecord, place: str) -> CollectionModel | None:
    """The remembered model with what stands in the command line, loaded; None if nothing about it stands there.

    A model is fetched only if its name stands there: the word of a collection is not enough. The variable for the model
    does not count: it says which one to take, not to change one.
    """
    from twinvec.collection.model import as_model, remembered_model

    context = click.get_current_context()
    given: dict[str, Any] = {
        name: value
        for name, value in asdict(model).items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if not given:
        return None
    if "name" not in given:
        return remembered_model(record, place, given)
    return as_model(given.pop("name"), given)


BATCH_ROWS = 4096  # written in one commit: what a kill can cost
TIDY_SHARE = 0.05  # so many new texts are worth going through all


@click.command()
@row_options
@click.option("-o", "--out", "folder", required=True, metavar="FOLDER", help="The collection; made if it is not there.")
@model_options()
@click.option("--language", default="English", show_default=True, help="Language of a new collection's words, or none.")
@click.option(
    "--re-embed", is_flag=True, help="Where FOLDER is of another model: embed all its texts again by this one."
)
def index(*, rows: RowChoice, folder: str, model: ModelChoice, language: str, re_embed: bool) -> None:
    """Add the texts of FILE to the collection FOLDER, and update those that have changed.

    FILE is plain lines, csv, tsv, jsonl or parquet. A row is known by its id; where there is none, by its text. Only
    texts that the collection does not have yet are embedded, so a second run is quick; one that was killed goes on.
    FOLDER may be an address in an object store, such as s3://bucket/notes.

    The other columns are kept, to filter by. All that csv and tsv have is text: name columns of numbers by --number.

    A collection keeps the model it was made with: without --model that one is used, and another is refused.
    """
    source = FileRows(rows)
    kinds = known_columns(folder)
    batches = source.batches(BATCH_ROWS, kinds)
    first = list(islice(batches, 1))
    for batch in first:
        batch.check(kinds)  # before a collection is made
    if_interrupted(f"what was added stays in {folder}, and the same command goes on.")
    collection = open_collection(folder, model, language=language, re_embed=re_embed)
    started = time.perf_counter()
    done: Counter[str] = Counter()
    for batch in chain(first, batches):
        written = batch.upsert_into(collection)
        done.update(added=written.n_added, replaced=written.n_replaced, unchanged=written.n_unchanged)
        done.update(embedded=written.n_embedded)
    if done["added"] + done["replaced"] > len(collection) * TIDY_SHARE:
        collection.tidy()
    counts = ", ".join(f"{done[what]:,} {what}" for what in ("added", "replaced", "unchanged"))
    repeated = f", {source.n_repeated:,} repeated" if source.n_repeated else ""
    took = show_seconds(time.perf_counter() - started)
    say(f"{folder}: {counts}{repeated}; {done['embedded']:,} embedded, in {took}. It holds {len(collection):,} texts.")


def known_columns(folder: str) -> dict[str, str]:
    """The columns of metadata that the collection has, none if it is not there, and what they hold."""
    from twinvec.collection import Collection
    from twinvec.collection.store import is_collection, locate

    return Collection.open(folder).columns if is_collection(locate(folder)) else {}


def open_collection(folder: str, model: ModelChoice, *, language: str, re_embed: bool) -> Collection:
    """The collection, made if it is not there, and of the model that was asked for."""
    from twinvec.collection import Collection
    from twinvec.collection.store import is_collection, locate
    from twinvec.embedder import ModelEmbedder

    if not is_collection(locate(folder)):
        words = None if language.lower() == "none" else language
        settings: dict[str, Any] = asdict(model)
        return Collection.create(folder, model=ModelEmbedder(settings.pop("name"), settings), language=words)
    collection = Collection.open(folder)
    given = given_model(model, collection.model, collection.path)
    if given is None:
        return collection
    if re_embed and given.record.digest != collection.model.digest:
        say(f"Embedding all {len(collection):,} texts of {folder} again by {given.record.name} ...")
        collection.reindex(given.embedder)
    return Collection.open(folder, model=given.embedder)
