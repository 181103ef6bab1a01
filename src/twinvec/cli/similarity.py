"""``twinvec similarity``: print how similar two texts are."""

from __future__ import annotations

import click

from twinvec.choices import SIMILARITY_NAMES
from twinvec.cli.options import ModelChoice, PromptChoice, model_options, prompt_options

__all__ = ["similarity"]


@click.command()
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@model_options()
@prompt_options
@click.option("--measure", type=click.Choice(SIMILARITY_NAMES), help="Similarity measure. Default: the model's own.")
def similarity(*, left: str, right: str, model: ModelChoice, prompt: PromptChoice, measure: str | None) -> None:
    """Print how similar the texts A and B are.

    Higher is more similar with every measure: distances (euclidean, manhattan) are printed with a minus sign.
    """
    import twinvec

    encoder = model.load()
    one, other = encoder.encode([left, right], prompt=prompt.prompt, prompt_name=prompt.prompt_name)
    if measure is None:
        score = encoder.similarity_pairwise(one, other)
    else:
        score = twinvec.similarity_pairwise(one, other, measure)
    click.echo(f"{float(score[0]):.6f}")
