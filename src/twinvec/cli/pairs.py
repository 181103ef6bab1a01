"""``twinvec pairs``: the most similar pairs of texts in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from twinvec.cli.options import (
    MethodChoice,
    ModelChoice,
    PromptChoice,
    TextSource,
    is_given,
    method_options,
    model_options,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from twinvec.search import Pairs

__all__ = ["pairs"]


@click.command()
@text_options
@model_options()
@prompt_options
@click.option("-k", type=click.IntRange(min=1), default=20, show_default=True, help="How many pairs.")
@click.option("--threshold", type=float, help="Only pairs with at least this cosine.")
@click.option(
    "--per-text",
    type=click.IntRange(min=1),
    metavar="N",
    help="Instead of the best pairs of all: each text with the N texts nearest to it.",
)
@method_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines also on a terminal.")
def pairs(
    *,
    source: TextSource,
    model: ModelChoice,
    prompt: PromptChoice,
    k: int,
    threshold: float | None,
    per_text: int | None,
    method: MethodChoice,
    as_json: bool,
) -> None:
    """Print the most similar pairs among the texts of FILE (default: '-', standard input), best first.

    FILE is read as by embed. Every text is compared with every other, exactly, by cosine; of very many, with those
    that an index finds near. A terminal gets a table; a file or a pipe gets JSON lines with the score, the two texts
    and their rows, counted from 0.
    """
    import twinvec

    if per_text is not None and is_given("k"):
        raise click.UsageError("Give -k or --per-text, not both.")
    texts = list(source.texts())
    found = twinvec.find_pairs(
        texts,
        k,
        model=model.embedder(prompt),
        threshold=threshold,
        per_text=per_text,
        **asdict(method),
        tell=say,
    )
    if as_json or not sys.stdout.isatty():
        for row in _json_rows(found, texts):
            print_json(row)
        return
    table = plain_table("score", "texts")
    for left, right, score in zip(*found, strict=True):
        table.add_row(f"{score:.3f}", f"{texts[left]}\n{texts[right]}")
    open_console().print(table)


def _json_rows(found: Pairs, texts: Sequence[str]) -> Iterator[dict[str, object]]:
    for left, right, score in zip(*found, strict=True):
        yield {
            "score": round(float(score), 6),
            "rows": [int(left), int(right)],
            "texts": [texts[left], texts[right]],
        }
