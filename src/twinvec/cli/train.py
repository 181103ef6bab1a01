"""``twinvec train``: a recipe, or one of the paper's ways to train with options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.cli.train_options import (
    TRAIN_OPTIONS,
    OutputChoice,
    TrainChoice,
    output_options,
    parse_columns,
    run_training,
    train_options,
)

if TYPE_CHECKING:
    from twinvec.training.recipe import DataPart

__all__ = ["train"]

FEATURES = ("u", "v", "|u-v|", "u*v")
NLI_LABELS = ("contradiction", "entailment", "neutral")
DISTANCES = ("euclidean", "cosine", "manhattan")
SCORED = ("cosine", "cosent")


class RecipeOrCommand(click.Group):
    """Takes the path of a recipe where it expects a command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A name that is no command but looks like a recipe runs it."""
        if args and args[0] not in self.commands and args[0].endswith(".toml"):
            args = ["recipe", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=RecipeOrCommand)
def train() -> None:
    """Train a siamese or triplet network: by a recipe, or on one file with options.

    \b
      twinvec train RECIPE.toml -o FOLDER
      twinvec train nli FILE -m MODEL --dev FILE -o FOLDER

    Files are tsv, csv, jsonl (also gzipped) or parquet, with named columns; twinvec data check FILE looks at one
    before you train. The defaults are those of Reimers and Gurevych (2019): one epoch, batches of 16, learning
    rate 2e-5 with a linear warm-up over 10 % of the steps, mean pooling. A run that is killed goes on where it
    was, to the same bits, when the same command is given again.
    """


columns_option = click.option(
    "--columns",
    multiple=True,
    metavar="ROLE=COLUMN",
    help="The column of a role, if it is not named like the role. Columns never count by their order.",
)
matryoshka_option = click.option(
    "--matryoshka", type=click.IntRange(min=1), multiple=True, help="Also train the vectors cut to this width."
)


@train.command(short_help="Train by a recipe in TOML.")
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@TRAIN_OPTIONS["trust_pickle"]
@output_options
def recipe(recipe: Path, output: OutputChoice, *, trust_pickle: bool) -> None:
    """Train by RECIPE, a TOML file; 'twinvec train RECIPE.toml' does the same. docs/train.md has an example."""
    from twinvec.training.recipe_file import read_recipe

    run_training(read_recipe(recipe, trust_pickle=trust_pickle), output)


@train.command(short_help="Classify pairs: premise, hypothesis, label.")
@click.argument("file")
@columns_option
@click.option(
    "--label",
    "labels",
    multiple=True,
    default=NLI_LABELS,
    show_default=True,
    help="The labels there are; give all of them.",
)
@click.option("--ignore-label", multiple=True, default=("-",), show_default=True, help="Leave out rows of this label.")
@click.option(
    "--feature",
    "features",
    multiple=True,
    type=click.Choice(FEATURES),
    metavar="FEATURE",
    default=("u", "v", "|u-v|"),
    show_default="u, v, |u-v|",
    help="What the classifier sees of the two vectors: u, v, |u-v|, u*v. Give all you want.",
)
@matryoshka_option
@train_options
@output_options
def nli(
    *,
    file: str,
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    ignore_label: tuple[str, ...],
    features: tuple[str, ...],
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns premise, hypothesis and label, with a softmax over u, v and |u - v|."""
    more = {"labels": labels, "ignore_labels": ignore_label}
    part = data_part(file, "softmax", columns=columns, options={"features": features}, matryoshka=matryoshka, more=more)
    run_training(choice.recipe(part), output)


@train.command(short_help="Fit scored pairs: text1, text2, score.")
@click.argument("file")
@columns_option
@click.option(
    "--score-range",
    type=float,
    nargs=2,
    default=(0.0, 5.0),
    show_default=True,
    help="Lowest and highest score of FILE.",
)
@click.option(
    "--objective",
    type=click.Choice(SCORED),
    default="cosine",
    show_default=True,
    help="cosine: squared error of the cosine, as the paper. cosent: the order of the cosines.",
)
@matryoshka_option
@train_options
@output_options
def sts(
    *,
    file: str,
    columns: tuple[str, ...],
    score_range: tuple[float, float],
    objective: str,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns text1, text2 and score. The paper takes 4 epochs for STSb."""
    part = data_part(file, objective, columns=columns, matryoshka=matryoshka, more={"score_range": score_range})
    run_training(choice.recipe(part), output)


@train.command(short_help="Tell near from far: anchor, positive, negative.")
@click.argument("file")
@columns_option
@click.option("--margin", type=float, default=1.0, show_default=True, help="By how much the negative is farther.")
@click.option(
    "--distance", type=click.Choice(DISTANCES), default="euclidean", show_default=True, help="How far is measured."
)
@matryoshka_option
@train_options
@output_options
def triplets(
    *,
    file: str,
    columns: tuple[str, ...],
    margin: float,
    distance: str,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns anchor, positive and negative."""
    options = {"margin": margin, "distance": distance}
    part = data_part(file, "triplet", columns=columns, options=options, matryoshka=matryoshka)
    run_training(choice.recipe(part), output)


@train.command(short_help="Rank among the batch: anchor, positive, and negatives if any.")
@click.argument("file")
@columns_option
@click.option("--scale", type=float, default=20.0, show_default=True, help="Factor of the cosines.")
@click.option("--symmetric", is_flag=True, help="Also rank the anchors for each positive.")
@matryoshka_option
@train_options
@output_options
def ranking(
    *,
    file: str,
    columns: tuple[str, ...],
    scale: float,
    symmetric: bool,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns anchor, positive and, if you have them, negative.

    The positives of the other pairs in the batch are negatives too. Large batches help; with --cached-texts they
    need no more memory. The same text twice in a batch is never taken for a negative of itself.
    """
    options = {"scale": scale, "symmetric": symmetric}
    part = data_part(file, "ranking", columns=columns, options=options, matryoshka=matryoshka)
    run_training(choice.recipe(part), output)


def data_part(
    file: str,
    objective: str,
    *,
    columns: tuple[str, ...],
    options: Mapping[str, object] | None = None,
    matryoshka: tuple[int, ...] = (),
    more: Mapping[str, object] | None = None,
) -> DataPart:
    """A data set of a recipe; ``more`` are further settings of its source."""
    from twinvec.data.roles import DataSource
    from twinvec.training.objectives import OBJECTIVES
    from twinvec.training.recipe import DataPart

    settings: dict[str, object] = {"columns": parse_columns(columns), **(more or {})}
    source = DataSource(file, OBJECTIVES[objective].examples, **settings)  # type: ignore[arg-type]
    return DataPart(source, objective, options or {}, matryoshka)
