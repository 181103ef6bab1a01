"""``twinvec pairs``: find the most similar pairs of texts in a file."""

from __future__ import annotations

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
    json_lines_option,
    method_options,
    model_options,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say, wants_json

if TYPE_CHECKING:
    from twinvec.search import Pairs

__all__ = ["pairs"]


@click.command()
@text_options
@model_options()
@prompt_options
@click.option("-k", type=click.IntRange(min=1), default=20, help="Number of pairs.")
@click.option("--threshold", type=float, help="Lowest cosine of a pair.")
@click.option(
    "--per-text",
    type=click.IntRange(min=1),
    metavar="N",
    help="Instead of the best pairs overall, print each text with its N nearest texts.",
)
@method_options
@json_lines_option
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

    FILE has the formats of twinvec embed. Similarity is the cosine. All pairs are compared exactly, or, for very many
    texts, those that an index finds. On a terminal the output is a table; in a file or a pipe it is JSON lines with
    the score, the two texts and their rows, counted from 0.
    """
    import twinvec

    if per_text is not None and is_given("k"):
        raise click.UsageError("Give -k or --per-text, not both.")
    texts = list(source.texts())
    best = twinvec.find_pairs(
        texts, k, model=model.embedder(prompt), threshold=threshold, per_text=per_text, **asdict(method), tell=say
    )
    if wants_json(as_json=as_json):
        for row in _json_rows(best, texts):
            print_json(row)
        return
    table = plain_table("score", "texts")
    for left, right, score in zip(*best, strict=True):
        table.add_row(f"{score:.3f}", f"{texts[left]}\n{texts[right]}")
    open_console().print(table)


def _json_rows(best: Pairs, texts: Sequence[str]) -> Iterator[dict[str, object]]:
    for left, right, score in zip(*best, strict=True):
        yield {"score": round(float(score), 6), "rows": [int(left), int(right)], "texts": [texts[left], texts[right]]}
