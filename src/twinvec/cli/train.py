"""``twinvec train``: a recipe, or one of the paper's ways to train with options."""

from __future__ import annotations

from pathlib import Path

import click

from twinvec.choices import DEFAULT_FEATURES, DISTANCES, FEATURES, NLI_LABELS, SCORE_OBJECTIVES
from twinvec.cli.options import Columns, columns_option, label_list
from twinvec.cli.train_options import (
    TRAIN_OPTIONS,
    OutputChoice,
    TrainChoice,
    matryoshka_option,
    output_options,
    run_training,
    score_range_option,
    train_options,
)

__all__ = ["train"]


class RecipeOrCommand(click.Group):
    """Takes the path of a recipe where it expects a command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A name that is not a command but looks like a recipe runs it."""
        if args and args[0] not in self.commands and args[0].endswith(".toml"):
            args = ["recipe", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=RecipeOrCommand)
def train() -> None:
    """Train a siamese or triplet network, from a recipe or from one file and options.

    \b
      twinvec train RECIPE.toml -o FOLDER
      twinvec train nli FILE -m MODEL --dev FILE -o FOLDER

    Files are tsv, csv, jsonl (also gzipped) or parquet, with named columns; check one with twinvec data check
    before you train. The defaults are those of Reimers and Gurevych (2019): one epoch, batches of 16, learning
    rate 2e-5 with a linear warm-up over 10 % of the steps, mean pooling. To continue a run that was killed, run
    the same command again: the result has the same bits.
    """


@train.command(short_help="Train from a recipe in TOML.")
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@TRAIN_OPTIONS["trust_pickle"]
@output_options
def recipe(recipe: Path, output: OutputChoice, *, trust_pickle: bool) -> None:
    """Train from RECIPE, a TOML file; 'twinvec train RECIPE.toml' does the same. docs/train.md has an example."""
    run_training(recipe, output, trust_pickle=trust_pickle)


@train.command(short_help="Classify pairs: premise, hypothesis, label.")
@click.argument("file")
@columns_option
@click.option(
    "--labels",
    metavar="A,B,...",
    callback=label_list,
    default=",".join(NLI_LABELS),
    show_default=True,
    help="All labels that rows may have.",
)
@click.option(
    "--ignore-label", multiple=True, default=("-",), show_default=True, help="Leave out rows with this label."
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    type=click.Choice(FEATURES),
    metavar="FEATURE",
    default=DEFAULT_FEATURES,
    show_default="u, v, |u-v|",
    help="What the classifier sees of the two vectors: u, v, |u-v|, u*v. Repeat it for each.",
)
@matryoshka_option
@train_options
@output_options
def nli(
    *,
    file: str,
    columns: Columns,
    labels: tuple[str, ...],
    ignore_label: tuple[str, ...],
    features: tuple[str, ...],
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns premise, hypothesis and label, with a softmax over u, v and |u - v|."""
    from twinvec.training import DataPart, DataSource

    source = DataSource(file, "labelled_pairs", columns, labels=labels, ignore_labels=ignore_label)
    run_training(choice.recipe(DataPart(source, "softmax", {"features": features}, matryoshka)), output)


@train.command(short_help="Fit scored pairs: text1, text2, score.")
@click.argument("file")
@columns_option
@score_range_option
@click.option(
    "--objective",
    type=click.Choice(SCORE_OBJECTIVES),
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
    columns: Columns,
    score_range: tuple[float, float],
    objective: str,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns text1, text2 and score. The paper takes 4 epochs for STSb."""
    from twinvec.training import DataPart, DataSource

    source = DataSource(file, "scored_pairs", columns, score_range=score_range)
    run_training(choice.recipe(DataPart(source, objective, matryoshka=matryoshka)), output)


@train.command(short_help="Learn from triplets: anchor, positive, negative.")
@click.argument("file")
@columns_option
@click.option("--margin", type=float, default=1.0, show_default=True, help="How much farther the negative must be.")
@click.option(
    "--distance", type=click.Choice(DISTANCES), default="euclidean", show_default=True, help="Distance measure."
)
@matryoshka_option
@train_options
@output_options
def triplets(
    *,
    file: str,
    columns: Columns,
    margin: float,
    distance: str,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns anchor, positive and negative."""
    from twinvec.training import DataPart, DataSource

    options = {"margin": margin, "distance": distance}
    part = DataPart(DataSource(file, "triplets", columns), "triplet", options, matryoshka)
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
    columns: Columns,
    scale: float,
    symmetric: bool,
    matryoshka: tuple[int, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE, columns anchor, positive and, if you have them, negative.

    The positives of the other pairs in the batch are negatives too. Large batches help; with --cached-texts they
    need no more memory. A copy of a text is never taken as its negative.
    """
    from twinvec.training import DataPart, DataSource

    options = {"scale": scale, "symmetric": symmetric}
    part = DataPart(DataSource(file, "ranked", columns), "ranking", options, matryoshka)
    run_training(choice.recipe(part), output)
