"""``twinvec index``: import the texts of a file into a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from twinvec.cli.options import ModelChoice, column_option, format_option, gathered, model_options, out_option
from twinvec.cli.screen import if_interrupted, say, show_seconds

if TYPE_CHECKING:
    from twinvec.collection import ImportSource

__all__ = ["RowChoice", "index", "row_options"]


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

    def source(self) -> ImportSource:
        """What the library takes."""
        from twinvec.collection import ImportSource

        metadata = () if self.no_metadata else self.metadata or None
        return ImportSource(self.file, self.column, self.id_column, metadata, self.number, self.format)


row_options = gathered(
    {
        "file": click.argument("file", metavar="FILE"),
        "column": column_option,
        "id_column": click.option("--id-column", help="Column of the ids. Default: id, if there is one."),
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
        "format": format_option,
    },
    "rows",
    build=RowChoice,
)


@click.command()
@row_options
@out_option("FOLDER", "The collection; made if it is not there.", required=True)
@model_options()
@click.option("--language", default="English", show_default=True, help="Language of a new collection's words, or none.")
@click.option(
    "--re-embed", is_flag=True, help="Where FOLDER is of another model: embed all its texts again by this one."
)
def index(*, rows: RowChoice, out: str, model: ModelChoice, language: str, re_embed: bool) -> None:
    """Add the texts of FILE to the collection FOLDER, and update those that have changed.

    FILE is plain lines, csv, tsv, jsonl or parquet. A row is known by its id; where there is none, by its text. Only
    texts that the collection does not have yet are embedded, so a second run is quick; one that was killed goes on.
    FOLDER may be an address in an object store, such as s3://bucket/notes.

    The other columns are kept, to filter by. All that csv and tsv have is text: name columns of numbers by --number.

    A collection keeps the model it was made with: without --model that one is used, and another is refused.
    """
    import twinvec

    if_interrupted(f"what was added stays in {out}, and the same command goes on.")
    name, arguments = model.given()
    done = twinvec.index_file(
        rows.source(),
        out,
        name,
        arguments=arguments,
        default_model=model.name,
        language=None if language.lower() == "none" else language,
        re_embed=re_embed,
        tell=say,
    )
    took = show_seconds(done.seconds)
    counts = f"{done.n_added:,} added, {done.n_replaced:,} replaced, {done.n_unchanged:,} unchanged"
    repeated = f", {done.n_repeated:,} repeated" if done.n_repeated else ""
    say(f"{out}: {counts}{repeated}; {done.n_embedded:,} embedded, in {took}. It holds {done.n_texts:,} texts.")
