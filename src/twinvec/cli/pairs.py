"""``twinvec pairs``: the most similar pairs of texts in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from twinvec.cli.options import (
    MethodChoice,
    ModelChoice,
    PromptChoice,
    TextSource,
    method_options,
    model_options,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json

if TYPE_CHECKING:
    from twinvec.search import Pairs
    from twinvec.types import Vectors

__all__ = ["pairs"]

PER_TEXT = 10  # neighbours of each text that an index is asked for


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
    if per_text is not None and given("k"):
        raise click.UsageError("Give -k or --per-text, not both.")
    texts = list(source.texts())
    vectors = model.load().encode(texts, prompt=prompt.prompt, prompt_name=prompt.prompt_name)
    found = find_pairs(vectors, k, threshold=threshold, per_text=per_text, method=method)
    if as_json or not sys.stdout.isatty():
        for row in _json_rows(found, texts):
            print_json(row)
        return
    table = plain_table("score", "texts")
    for left, right, score in zip(*found, strict=True):
        table.add_row(f"{score:.3f}", f"{texts[left]}\n{texts[right]}")
    open_console().print(table)


def find_pairs(
    vectors: Vectors, k: int, *, threshold: float | None, per_text: int | None, method: MethodChoice
) -> Pairs:
    """The best pairs of all, or those of each text with its nearest; exact, or by an index."""
    from twinvec.search import approximate_pairs, most_similar_pairs, neighbor_pairs, neighbors

    index = method.build(vectors)
    if index is not None:
        n_pairs = k if per_text is None else None
        return approximate_pairs(vectors, n_pairs, threshold=threshold, per_text=per_text or PER_TEXT, index=index)
    if per_text is None:
        return most_similar_pairs(vectors, k, threshold=threshold)
    return neighbor_pairs(neighbors(vectors, per_text), threshold=threshold)


def given(option: str) -> bool:
    """Whether the user has given an option, rather than left it to its default."""
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _json_rows(found: Pairs, texts: Sequence[str]) -> Iterator[dict[str, object]]:
    for left, right, score in zip(*found, strict=True):
        yield {
            "score": round(float(score), 6),
            "rows": [int(left), int(right)],
            "texts": [texts[left], texts[right]],
        }
