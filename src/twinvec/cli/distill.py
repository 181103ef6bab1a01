"""``twinvec distill``: train a small model to imitate larger ones."""

from __future__ import annotations

from pathlib import Path

import click

from twinvec.choices import VECTOR_LOSSES
from twinvec.cli.options import is_given
from twinvec.cli.train_options import (
    OUTPUT_OPTIONS,
    OutputChoice,
    TrainChoice,
    TrainData,
    data_options,
    distill_options,
    output_options,
    run_training,
)

__all__ = ["distill"]


@click.command()
@click.option("--teacher", "teachers", multiple=True, help="Model to learn from. Repeatable.")
@data_options
@click.option(
    "--loss",
    type=click.Choice(VECTOR_LOSSES),
    default="cosine",
    help="Loss between a vector and the teacher's: 1 - cosine, or the mean squared error.",
)
@click.option(
    "--similarity-weight",
    type=click.FloatRange(min=0),
    default=5.0,
    help="Weight of a second loss: the squared error of the similarities within a batch.",
)
@distill_options
@output_options
def distill(
    *,
    data: TrainData,
    teachers: tuple[str, ...],
    loss: str,
    similarity_weight: float,
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train a model (-m) to imitate the vectors of one or more teachers on the texts of FILE.

    FILE may also be a recipe in TOML. All teachers have the same weight. A teacher whose vectors have another width is
    compared through a projection, which is trained with the model and then discarded. The teachers embed each text
    once; their vectors are cached in TWINVEC_CACHE.
    """
    if data.file.endswith(".toml"):
        _refuse_options()
        run_training(Path(data.file), output, trust_pickle=choice.trust_pickle)
        return
    if not choice.start or not teachers:
        raise click.UsageError("Give the model to train with -m, and at least one --teacher.")
    options = {"loss": loss, "similarity_weight": similarity_weight}
    run_training(choice.recipe(data.part("texts", "distillation", options, teachers=teachers)), output)


def _refuse_options() -> None:
    """Refuse options that a recipe would silently override."""
    for name in click.get_current_context().params:
        if is_given(name) and name not in {"file", "trust_pickle", *OUTPUT_OPTIONS}:
            raise click.UsageError(f"With a recipe, --{name.replace('_', '-')} belongs in the recipe.")
