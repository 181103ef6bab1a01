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
    from twinvec.embedder import embed_texts

    embedder = model.embedder(prompt)
    one, other = embed_texts(embedder, [left, right])
    score = twinvec.similarity_pairwise(one, other, measure or embedder.similarity)
    click.echo(f"{float(score[0]):.6f}")
