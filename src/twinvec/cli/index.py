"""``twinvec index``: import the texts of a file into a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from twinvec.cli.options import ModelChoice, column_option, format_option, model_options, option_group, out_option
from twinvec.cli.screen import if_interrupted, say, show_seconds

if TYPE_CHECKING:
    from twinvec.collection import ImportSource

__all__ = ["index"]


@dataclass(frozen=True, slots=True)
class RowChoice:
    """A file and the meaning of its columns."""

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
        """The file and its columns for the library."""
        from twinvec.collection import ImportSource

        metadata = () if self.no_metadata else self.metadata or None
        return ImportSource(self.file, self.column, self.id_column, metadata, self.number, self.format)


row_options = option_group(
    {
        "file": click.argument("file", metavar="FILE"),
        "column": column_option,
        "id_column": click.option("--id-column", help="Column with the ids. Default: id, if it exists."),
        "metadata": click.option(
            "--metadata",
            multiple=True,
            metavar="COLUMN",
            help="Store this column as metadata. Repeatable. Default: all other columns.",
        ),
        "no_metadata": click.option("--no-metadata", is_flag=True, help="Store no other column."),
        "number": click.option(
            "--number",
            multiple=True,
            metavar="COLUMN",
            help="Store this column as numbers. Repeatable. For csv and tsv, where every value is text.",
        ),
        "format": format_option,
    },
    "rows",
    build=RowChoice,
)


@click.command()
@row_options
@out_option("FOLDER", "The collection; created if it does not exist.", required=True)
@model_options()
@click.option(
    "--language",
    default="auto",
    help="Language of a new collection, for word search; none for no stemming. auto: Korean, Japanese or Chinese by "
    "the letters of the first texts, else English.",
)
@click.option(
    "--re-embed", is_flag=True, help="If FOLDER was made with another model, embed all its texts again with this one."
)
def index(*, rows: RowChoice, out: str, model: ModelChoice, language: str, re_embed: bool) -> None:
    """Add the texts of FILE to the collection FOLDER, and update those that have changed.

    FILE is plain lines, csv, tsv, jsonl or parquet. Rows are identified by their id, or by their text if there are no
    ids. Texts that are already there are not embedded again. After an interruption, run the same command again to
    continue. FOLDER may be an address in an object store, such as s3://bucket/notes.

    The other columns are stored as metadata, to filter by. In csv and tsv every value is text; use --number for
    columns of numbers.

    A collection stays with the model it was made with: that model is the default here, and others are rejected.
    """
    import twinvec

    if_interrupted(f"The texts added so far are kept in {out}; run the same command again to continue.")
    name, arguments = model.explicit()
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
    counts = f"{done.n_added:,} added, {done.n_replaced:,} replaced, {done.n_unchanged:,} unchanged"
    repeated = f", {done.n_repeated:,} repeated" if done.n_repeated else ""
    embedded = f"{done.n_embedded:,} embedded, in {show_seconds(done.seconds)}"
    say(f"{out}: {counts}{repeated}; {embedded}. It holds {done.n_texts:,} texts.")
