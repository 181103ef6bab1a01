"""``twinvec distill``: a small model that imitates larger ones."""

from __future__ import annotations

from pathlib import Path

import click

from twinvec.choices import VECTOR_LOSSES
from twinvec.cli.options import Columns, columns_option
from twinvec.cli.train_options import (
    OUTPUT_OPTIONS,
    OutputChoice,
    TrainChoice,
    distill_options,
    matryoshka_option,
    output_options,
    run_training,
)

__all__ = ["distill"]


@click.command()
@click.argument("file")
@click.option("--teacher", "teachers", multiple=True, help="Model to learn from; may be given several times.")
@columns_option
@click.option(
    "--loss",
    type=click.Choice(VECTOR_LOSSES),
    default="cosine",
    show_default=True,
    help="How a vector is compared with the teacher's: 1 - cosine, or the squared difference.",
)
@click.option(
    "--similarity-weight",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Weight of the squared difference of the similarities within a batch.",
)
@matryoshka_option
@distill_options
@output_options
def distill(
    *,
    file: str,
    teachers: tuple[str, ...],
    columns: Columns,
    loss: str,
    similarity_weight: float,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Teach a model (-m) the vectors of one or several teachers on the texts of FILE, or by FILE, a recipe in TOML.

    Several teachers count alike, each by its own vectors; one of another width through a projection that is learned
    with the model, which does not keep it. Teachers' vectors are made once per text, and kept below TWINVEC_CACHE.
    """
    if file.endswith(".toml"):
        _refuse_options()
        run_training(Path(file), output, trust_pickle=choice.trust_pickle)
        return
    if not choice.start or not teachers:
        raise click.UsageError("Name the model to teach with -m, and at least one --teacher.")
    from twinvec.training import DataPart, DataSource

    options = {"loss": loss, "similarity_weight": similarity_weight}
    part = DataPart(DataSource(file, "texts", columns), "distillation", options, matryoshka, teachers=teachers)
    run_training(choice.recipe(part), output)


def _refuse_options() -> None:
    """A recipe says how to train; an option beside it would be ignored without a word."""
    context = click.get_current_context()
    for name in context.params:
        is_given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if is_given and name not in {"file", "trust_pickle", *OUTPUT_OPTIONS}:
            raise click.UsageError(f"With a recipe, --{name.replace('_', '-')} belongs in the recipe.")
