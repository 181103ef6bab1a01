"""``twinvec train``: train from a recipe, or with one of the paper's objectives and options."""

from __future__ import annotations

from pathlib import Path

import click

from twinvec.choices import (
    DEFAULT_FEATURES,
    DISTANCES,
    FEATURES,
    NLI_LABELS,
    PAIR_SCORE_OBJECTIVES,
    SCORE_OBJECTIVES,
)
from twinvec.cli.options import split_labels
from twinvec.cli.screen import CleanErrors
from twinvec.cli.train_options import (
    TRAIN_OPTIONS,
    OutputChoice,
    TrainChoice,
    TrainData,
    data_options,
    output_options,
    run_training,
    score_range_option,
    train_options,
)

__all__ = ["train"]


class RecipeOrCommand(CleanErrors):
    """A group that also accepts the path of a recipe instead of a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Run ``recipe`` for a path that ends in .toml."""
        if args and args[0] not in self.commands and args[0].endswith(".toml"):
            args = ["recipe", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=RecipeOrCommand)
def train() -> None:
    """Train a siamese or triplet network or a cross-encoder, from a recipe or from one file and options.

    \b
      twinvec train RECIPE.toml -o FOLDER
      twinvec train nli FILE -m MODEL --dev FILE -o FOLDER

    Files are tsv, csv, jsonl (also gzipped) or parquet, with named columns. Run twinvec data check on a file before
    you train on it. The defaults are those of Reimers and Gurevych (2019): one epoch, batches of 16, learning rate
    2e-5 with a linear warm-up over 10 % of the steps, mean pooling. After an interruption, run the same command again
    to continue; the result has the same bits as an uninterrupted run.
    """


@train.command(short_help="Train from a recipe in TOML.")
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@TRAIN_OPTIONS["trust_pickle"]
@output_options
def recipe(recipe: Path, output: OutputChoice, *, trust_pickle: bool) -> None:
    """Train from RECIPE, a TOML file. 'twinvec train RECIPE.toml' does the same. docs/train.md has an example."""
    run_training(recipe, output, trust_pickle=trust_pickle)


@train.command(short_help="Classify pairs: premise, hypothesis, label.")
@data_options
@click.option(
    "--labels", metavar="A,B,...", callback=split_labels, default=",".join(NLI_LABELS), help="Allowed labels."
)
@click.option("--ignore-label", multiple=True, default=("-",), help="Skip rows with this label. Repeatable.")
@click.option(
    "--feature",
    "features",
    multiple=True,
    type=click.Choice(FEATURES),
    metavar="FEATURE",
    help="Input of the classifier, from the two vectors: u, v, |u-v| or u*v. Repeatable. Default: the first three; "
    "a cross-encoder has no vectors.",
)
@train_options
@output_options
def nli(
    *,
    data: TrainData,
    labels: tuple[str, ...],
    ignore_label: tuple[str, ...],
    features: tuple[str, ...],
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE (columns premise, hypothesis and label) with a softmax classifier over u, v and |u - v|."""
    defaults = {} if choice.network == "cross-encoder" else {"features": DEFAULT_FEATURES}
    options = {"features": features} if features else defaults
    part = data.part("labelled_pairs", "softmax", options, labels=labels, ignore_labels=ignore_label)
    run_training(choice.recipe(part), output)


@train.command(short_help="Fit scored pairs: text1, text2, score.")
@data_options
@score_range_option
@click.option(
    "--objective",
    type=click.Choice((*SCORE_OBJECTIVES, *PAIR_SCORE_OBJECTIVES)),
    help="cosine: squared error of the cosine, as in the paper (default). cosent: ranking loss on the cosines. For "
    "cross-encoders, bce: binary cross-entropy (default); mse: squared error of the score.",
)
@train_options
@output_options
def sts(
    *,
    data: TrainData,
    score_range: tuple[float, float],
    objective: str | None,
    choice: TrainChoice,
    output: OutputChoice,
) -> None:
    """Train on FILE (columns text1, text2 and score). The paper trains 4 epochs on STSb."""
    objectives = PAIR_SCORE_OBJECTIVES if choice.network == "cross-encoder" else SCORE_OBJECTIVES
    run_training(
        choice.recipe(data.part("scored_pairs", objective or objectives[0], {}, score_range=score_range)), output
    )


@train.command(short_help="Learn from triplets: anchor, positive, negative.")
@data_options
@click.option("--margin", type=float, default=1.0, help="How much farther than the positive the negative must be.")
@click.option("--distance", type=click.Choice(DISTANCES), default="euclidean", help="Distance measure.")
@train_options
@output_options
def triplets(*, data: TrainData, margin: float, distance: str, choice: TrainChoice, output: OutputChoice) -> None:
    """Train on FILE (columns anchor, positive and negative)."""
    part = data.part("triplets", "triplet", {"margin": margin, "distance": distance})
    run_training(choice.recipe(part), output)


@train.command(short_help="Rank within the batch: anchor, positive, and optional negatives.")
@data_options
@click.option("--scale", type=float, help="Factor that multiplies the cosines. Default: 20.")
@click.option("--symmetric", is_flag=True, help="Also rank the anchors for each positive.")
@train_options
@output_options
def ranking(
    *, data: TrainData, scale: float | None, symmetric: bool, choice: TrainChoice, output: OutputChoice
) -> None:
    """Train on FILE (columns anchor, positive and, optionally, negatives).

    The positives of the other pairs in the batch serve as negatives. Large batches help; with --cached-texts they need
    no more memory. A copy of a text is never its negative. A cross-encoder ranks the positive among its negatives and
    the positives of four other pairs.
    """
    given = {"scale": scale} if scale is not None else {}
    given |= {"symmetric": True} if symmetric else {}
    defaults = {} if choice.network == "cross-encoder" else {"scale": 20.0, "symmetric": False}
    run_training(choice.recipe(data.part("ranked", "ranking", defaults | given)), output)
