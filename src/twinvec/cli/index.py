"""``twinvec index``: the texts of a file into a collection."""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from twinvec.cli.group import if_interrupted
from twinvec.cli.index_rows import FileRows, RowChoice, row_options
from twinvec.cli.options import ModelChoice, model_options
from twinvec.cli.screen import say, show_seconds

if TYPE_CHECKING:
    from twinvec.collection import Collection

__all__ = ["index", "known_columns", "open_collection"]

BATCH_ROWS = 4096  # written in one commit: what a kill can cost
TIDY_SHARE = 0.05  # so many new texts are worth going through all


@click.command(short_help="Put the texts of a file into a collection, which can be searched.")
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
    from twinvec.collection.location import locate
    from twinvec.collection.store import is_collection

    return Collection.open(folder).columns if is_collection(locate(folder)) else {}


def open_collection(folder: str, model: ModelChoice, *, language: str, re_embed: bool) -> Collection:
    """The collection, made if it is not there, and of the model that was asked for."""
    from twinvec.cli.collection_model import chosen_embedder, given_embedder
    from twinvec.collection import Collection
    from twinvec.collection.location import locate
    from twinvec.collection.store import is_collection

    if not is_collection(locate(folder)):
        words = None if language.lower() == "none" else language
        return Collection.create(folder, model=chosen_embedder(model), language=words)
    collection = Collection.open(folder)
    embedder = given_embedder(model, collection.model, collection.path)
    if embedder is None:
        return collection
    if re_embed and embedder.record.digest != collection.model.digest:
        say(f"Embedding all {len(collection):,} texts of {folder} again by {embedder.record.name} ...")
        collection.reindex(embedder)
    return Collection.open(folder, model=embedder)
