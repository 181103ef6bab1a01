"""``twinvec explain``: why two texts are similar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.cli.options import ModelChoice, PromptChoice, model_options, prompt_options
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from twinvec.explanation import Explanation, PairExplanation
    from twinvec.types import Array

__all__ = ["explain"]

BAR_WIDTH = 24


@click.command()
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@model_options()
@prompt_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with a picture, which needs no other file.",
)
@click.option("--force", is_flag=True, help="Replace the page if it exists.")
def explain(
    *,
    left: str,
    right: str,
    model: ModelChoice,
    prompt: PromptChoice,
    as_json: bool,
    html_file: Path | None,
    force: bool,
) -> None:
    """Show what each token of the texts A and B contributes to their cosine.

    The contributions of each text's tokens add up to the cosine. They are exact for mean pooling and for SBERT-WK
    (--readout wk), whose vectors are sums over tokens; other models are refused.
    """
    import twinvec
    from twinvec.files import check_target, new_file

    if html_file is not None:
        check_target(html_file, replace=force)
    pair = twinvec.explain(left, right, model=model.embedder(prompt))
    if as_json:
        print_json(_as_dict(pair))
    else:
        print_pair(pair)
    if html_file is not None:
        from twinvec.report.explanation import explanation_html

        with new_file(html_file, replace=force) as stream:
            stream.write(explanation_html(pair).encode())
        say(f"Wrote {html_file}.")


def print_pair(pair: PairExplanation) -> None:
    """A table for each text, on standard output: tokens, contributions as bars, and the best partner of each."""
    console = open_console()
    console.print(f"cosine {pair.cosine:.4f}", style="bold")
    shares = pair.of_left, pair.of_right
    largest = max((abs(value) for each in shares for value in each.tolist()), default=0.0)
    sides = ((pair.left, pair.right, pair.contributions), (pair.right, pair.left, pair.contributions.T))
    for name, (side, other, values), contributed in zip("AB", sides, shares, strict=True):
        console.print()
        console.print(f"{name}: {side.text}", style="italic", soft_wrap=True)
        table = plain_table("token", "contribution", "", f"most with {'BA'[name == 'B']}")
        table.columns[1].justify = "right"
        for token, share, row in zip(side.tokens, contributed.tolist(), values, strict=True):
            style = "red" if share < 0 else "blue"
            bar = "█" * round(BAR_WIDTH * abs(share) / largest) if largest else ""
            table.add_row(token, f"{share:.4f}", _colored(bar, style), _partner(other, row))
        console.print(table)


def _colored(shown: str, style: str) -> Any:  # noqa: ANN401 - rich is imported only when something is shown
    from rich.text import Text

    return Text(shown, style=style)


def _partner(other: Explanation, row: Array) -> str:
    """The token of the other text with the highest contribution together."""
    return other.tokens[int(row.argmax())] if row.size else ""


def _as_dict(pair: PairExplanation) -> dict[str, Any]:
    sides = {}
    for name, side, shares in (("left", pair.left, pair.of_left), ("right", pair.right, pair.of_right)):
        tokens = [
            {"token": token, "weight": round(float(weight), 6), "contribution": round(float(share), 6)}
            for token, weight, share in zip(side.tokens, side.importance, shares, strict=True)
        ]
        sides[name] = {"text": side.text, "tokens": tokens}
    return {"cosine": round(pair.cosine, 6), **sides, "contributions": pair.contributions.round(6).tolist()}
