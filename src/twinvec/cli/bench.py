"""``twinvec bench``: the speed of a model on this machine, and the accuracy of each precision."""

from __future__ import annotations

import click

from twinvec.choices import PRECISIONS
from twinvec.cli.options import ModelChoice, model_options
from twinvec.cli.screen import open_console, plain_table, say

__all__ = ["bench"]


@click.command()
@model_options(without=("precision", "long", "unknown", "truncate_dim"))
@click.option(
    "--precision",
    "precisions",
    type=click.Choice(PRECISIONS),
    multiple=True,
    help="Precision to measure. Repeatable. Default: all that this machine supports.",
)
def bench(*, model: ModelChoice, precisions: tuple[str, ...]) -> None:
    """Measure a model on this machine: texts per second, and milliseconds for a single text.

    Each number is the median of 5 rounds after a warm-up, on 990 built-in sentences of 15 words on average. The last
    column is the mean cosine between the vectors of each precision and those of float32.
    """
    import twinvec

    table = plain_table("precision", "texts per second", "ms for one text", "mean cosine to float32", n_left=1)
    for speed in twinvec.measure_speed(model.embedder(), precisions, tell=say):
        cosine = "" if speed.cosine is None else f"{speed.cosine:.5f}"
        table.add_row(speed.precision, f"{speed.texts_per_s:,.0f}", f"{speed.single_ms:.2f}", cosine)
    open_console().print(table)
