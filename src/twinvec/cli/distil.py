"""``twinvec distil``: a small model that says what larger ones say."""

from __future__ import annotations

from pathlib import Path

import click

from twinvec.cli.train import columns_option, matryoshka_option
from twinvec.cli.train_options import (
    OUTPUT_OPTIONS,
    OutputChoice,
    TrainChoice,
    distil_options,
    output_options,
    parse_columns,
    run_training,
)

__all__ = ["distil"]

LOSSES = ("cosine", "mse")


@click.command()
@click.argument("file")
@click.option("--teacher", "teachers", multiple=True, help="Model to learn from; may be given several times.")
@columns_option
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
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
@distil_options
@output_options
def distil(
    *,
    file: str,
    teachers: tuple[str, ...],
    columns: tuple[str, ...],
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
    from twinvec.training.recipe_file import read_recipe

    if file.endswith(".toml"):
        _refuse_options()
        run_training(read_recipe(Path(file), trust_pickle=choice.trust_pickle), output)
        return
    if not choice.start or not teachers:
        raise click.UsageError("Name the model to teach with -m, and at least one --teacher.")
    from twinvec.data.roles import DataSource
    from twinvec.training.recipe import DataPart

    part = DataPart(
        DataSource(file, "texts", columns=parse_columns(columns)),
        "distillation",
        {"loss": loss, "similarity_weight": similarity_weight},
        matryoshka,
        teachers=teachers,
    )
    run_training(choice.recipe(part), output)


def _refuse_options() -> None:
    """A recipe says how to train; an option beside it would be forgotten in silence."""
    context = click.get_current_context()
    for name in context.params:
        is_given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if is_given and name not in {"file", "trust_pickle", *OUTPUT_OPTIONS}:
            raise click.UsageError(f"With a recipe, --{name.replace('_', '-')} belongs in the recipe.")
