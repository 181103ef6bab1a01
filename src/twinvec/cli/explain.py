"""``twinvec explain``: why two texts are similar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.cli.options import ModelChoice, PromptChoice, json_option, model_options, prompt_options
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from twinvec.explanation import PairExplanation

__all__ = ["explain"]

BAR_WIDTH = 24


@click.command()
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@model_options()
@prompt_options
@json_option
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a self-contained HTML page with a picture.",
)
@click.option("--force", is_flag=True, help="Overwrite the page if it exists.")
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
    """Show how much each token of the texts A and B contributes to their cosine.

    The contributions of the tokens of each text add up to the cosine. They are exact for mean pooling and for SBERT-WK
    (--readout wk), whose vectors are sums over tokens. Other poolings are rejected.
    """
    import twinvec
    from twinvec.files import check_target, new_file

    if html_file is not None:
        check_target(html_file, replace=force)
    pair = twinvec.explain(left, right, model=model.embedder(prompt))
    if as_json:
        print_json(pair.as_dict())
    else:
        print_pair(pair)
    if html_file is not None:
        from twinvec.report.explanation import explanation_html

        with new_file(html_file, replace=force) as stream:
            stream.write(explanation_html(pair).encode())
        say(f"Wrote {html_file}.")


def print_pair(pair: PairExplanation) -> None:
    """Print a table for each text: its tokens, their contributions as bars, and the best partner of each."""
    from rich.text import Text

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
            partner = other.tokens[int(row.argmax())] if row.size else ""
            table.add_row(token, f"{share:.4f}", Text(bar, style=style), partner)
        console.print(table)
