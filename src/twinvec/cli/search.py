"""``twinvec search``: the best texts of a collection, or of a file, for a query."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.choices import CANDIDATES, FORMATS, SEARCH_MODES
from twinvec.cli.options import ModelChoice, TextSource, model_options
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from twinvec.choices import SearchMode

__all__ = ["Found", "print_found", "search"]

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """What is shown of a text, from a collection or from a file."""

    score: float
    id: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)


@click.command()
@click.argument("place", metavar="FOLDER|FILE")
@click.argument("query")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many texts.")
@click.option(
    "--mode",
    type=click.Choice(SEARCH_MODES),
    default="dense",
    show_default=True,
    help="By meaning (dense), by words (text), or by both (hybrid).",
)
@click.option("--where", metavar="CONDITION", help='Only texts with this metadata, in SQL: "year >= 1990".')
@click.option("--column", help="Of a file, the column of the texts.")
@click.option("--format", type=click.Choice(FORMATS), help="Of a file, its format. Default: by its ending.")
@click.option("--rerank", metavar="MODEL", help="Order the best texts anew by this cross-encoder: a folder or a name.")
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=CANDIDATES,
    show_default=True,
    help="How many texts --rerank orders, and --mode hybrid joins.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines also on a terminal.")
@model_options()
def search(
    *,
    place: str,
    query: str,
    k: int,
    mode: SearchMode,
    where: str | None,
    column: str | None,
    format: str | None,
    rerank: str | None,
    candidates: int,
    as_json: bool,
    model: ModelChoice,
) -> None:
    """Print the texts of a collection (FOLDER, made by index) that answer QUERY best, best first.

    The texts of a FILE, read as by embed, are embedded on the fly and all compared; that needs no collection. A
    terminal gets a table; a file or a pipe gets JSON lines with the score, the id, the text and the metadata. The id
    of a text of a file is its row, counted from 0.

    A collection is searched by the model it was made with; --model is for one that has moved, and for files.
    """
    if Path(place).is_dir() or "://" in place:
        if column or format:
            raise click.UsageError("--column and --format are for files.")
        import twinvec

        name, arguments = model.given()
        collection = twinvec.Collection.open(place, model=name, arguments=arguments)
        answers = collection.search(query, k, mode=mode, where=where, rerank=rerank, candidates=candidates)
        hits = [Found(hit.score, hit.id, hit.text, hit.metadata) for hit in answers]
    else:
        if place != STDIN and not Path(place).exists():
            raise click.ClickException(
                f"There is neither a collection nor a file {place}. Make a collection: twinvec index FILE -o {place}."
            )
        if mode != "dense" or where:
            raise click.UsageError(f"--mode and --where need a collection: twinvec index {place} --out FOLDER")
        import twinvec

        texts = list(TextSource(place, column, format).texts())
        rows = twinvec.search_texts(query, texts, k, model=model.embedder(), rerank=rerank, candidates=candidates)
        hits = [Found(hit.score, str(hit.row), hit.text) for hit in rows]
    print_found(hits, as_json=as_json)


def print_found(hits: Sequence[Found], *, as_json: bool) -> None:
    """Print texts with their scores: a table on a terminal, JSON lines elsewhere or if asked for."""
    if not hits:
        say("No text was found.")
    elif as_json or not sys.stdout.isatty():
        for hit in hits:
            print_json(_row(hit))
    else:
        _print_table(hits)


def _row(hit: Found) -> dict[str, object]:
    row: dict[str, object] = {"score": round(hit.score, 6), "id": hit.id, "text": hit.text}
    return {**row, "metadata": hit.metadata} if hit.metadata else row


def _print_table(hits: Sequence[Found]) -> None:
    table = plain_table("score", "id", "text")
    for hit in hits:
        told = ", ".join(f"{name}: {_shown(value)}" for name, value in hit.metadata.items())
        table.add_row(f"{hit.score:.4f}", hit.id, f"{hit.text}\n{told}".rstrip("\n"))
    open_console().print(table)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
