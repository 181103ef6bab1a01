"""``twinvec search``: search a collection or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.choices import CANDIDATES, FORMATS, SEARCH_MODES
from twinvec.cli.options import ModelChoice, TextSource, json_lines_option, model_options
from twinvec.cli.screen import open_console, plain_table, print_json, say, wants_json

if TYPE_CHECKING:
    from twinvec.choices import SearchMode

__all__ = ["Hit", "print_hits", "search"]

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Hit:
    """A result from a collection or from a file."""

    score: float
    id: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)


@click.command()
@click.argument("target", metavar="FOLDER|FILE")
@click.argument("query")
@click.option("-k", type=click.IntRange(min=1), default=10, help="Number of results.")
@click.option(
    "--mode",
    type=click.Choice(SEARCH_MODES),
    default="dense",
    help="Search by meaning (dense), by words (text), or by both (hybrid).",
)
@click.option("--where", metavar="CONDITION", help='Filter by metadata, as in SQL: "year >= 1990".')
@click.option("--column", help="For a file: column with the texts.")
@click.option("--format", type=click.Choice(FORMATS), help="For a file: its format. Default: from its extension.")
@click.option("--rerank", metavar="MODEL", help="Re-rank the best results with this cross- or poly-encoder.")
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=CANDIDATES,
    help="Number of texts that --rerank scores, and that --mode hybrid takes from each ranking.",
)
@json_lines_option
@model_options()
def search(
    *,
    target: str,
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
    """Print the texts that match QUERY best, best first, from a collection (FOLDER, made by twinvec index) or a FILE.

    FILE has the formats of twinvec embed; all its texts are embedded and compared on the fly. On a terminal the output
    is a table; in a file or a pipe it is JSON lines with the score, the id, the text and the metadata. The id of a text
    of a file is its row, counted from 0.

    A collection is searched with the model it was made with. Use --model for files, or if that model has moved.
    """
    if Path(target).is_dir() or "://" in target:
        if column or format:
            raise click.UsageError("--column and --format are for files, not for collections.")
        import twinvec

        name, arguments = model.explicit()
        collection = twinvec.Collection.open(target, model=name, arguments=arguments)
        found = collection.search(query, k, mode=mode, where=where, rerank=rerank, candidates=candidates)
        hits = [Hit(hit.score, hit.id, hit.text, hit.metadata) for hit in found]
    else:
        if target != STDIN and not Path(target).exists():
            raise click.ClickException(
                f"No collection or file {target} exists. Create a collection with: twinvec index FILE -o {target}."
            )
        if mode != "dense" or where:
            raise click.UsageError(
                f"--mode and --where require a collection. Create one with: twinvec index {target} -o FOLDER"
            )
        import twinvec

        texts = list(TextSource(target, column, format).texts())
        rows = twinvec.search_texts(query, texts, k, model=model.embedder(), rerank=rerank, candidates=candidates)
        hits = [Hit(hit.score, str(hit.row), hit.text) for hit in rows]
    print_hits(hits, as_json=as_json)


def print_hits(hits: Sequence[Hit], *, as_json: bool) -> None:
    """Print texts with their scores: a table on a terminal, JSON lines otherwise or with ``as_json``."""
    if not hits:
        say("No results.")
    elif wants_json(as_json=as_json):
        for hit in hits:
            print_json(_row(hit))
    else:
        _print_table(hits)


def _row(hit: Hit) -> dict[str, object]:
    row: dict[str, object] = {"score": round(hit.score, 6), "id": hit.id, "text": hit.text}
    return {**row, "metadata": hit.metadata} if hit.metadata else row


def _print_table(hits: Sequence[Hit]) -> None:
    table = plain_table("score", "id", "text")
    for hit in hits:
        metadata = ", ".join(f"{name}: {_format(value)}" for name, value in hit.metadata.items())
        table.add_row(f"{hit.score:.4f}", hit.id, f"{hit.text}\n{metadata}".rstrip("\n"))
    open_console().print(table)


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
