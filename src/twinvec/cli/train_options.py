"""Options of the commands that train, gathered into one object that builds a recipe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.choices import DEFAULT_MODEL, DEFAULT_SCORE_RANGE, POOLINGS, TRAIN_DEVICES, TRAIN_PRECISIONS
from twinvec.cli.options import MODEL_VARIABLE, Columns, Decorator, gathered, parse_columns
from twinvec.cli.screen import if_interrupted
from twinvec.errors import TwinvecError

if TYPE_CHECKING:
    from twinvec.training import DataPart, DataSource, Recipe

__all__ = [
    "OutputChoice",
    "TrainChoice",
    "distill_options",
    "matryoshka_option",
    "output_options",
    "run_training",
    "score_range_option",
    "train_options",
]


@dataclass(frozen=True, slots=True)
class TrainChoice:
    """What to start from, how to train, and what to score the result on."""

    start: str
    pooling: str | None
    max_tokens: int | None
    trust_pickle: bool
    dev: str | None
    dev_columns: Columns
    dev_score_range: tuple[float, float]
    every: int | None
    patience: int | None
    test: tuple[str, ...]
    epochs: int
    batch_size: int
    learning_rate: float
    warmup: float
    weight_decay: float
    max_grad_norm: float
    accumulation: int
    cached_texts: int | None
    max_steps: int | None
    dropout: float | None
    precision: str
    seed: int

    def __post_init__(self) -> None:
        if self.dev is None and (self.every or self.patience):
            raise click.UsageError("--dev-every and --patience need a --dev FILE.")

    def recipe(self, data: DataPart) -> Recipe:
        """The recipe of these options for one data set."""
        from twinvec.training import DevPart, ModelPart, Recipe, TrainSettings

        settings: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(TrainSettings) if each.name != "mixing"
        }
        return Recipe(
            model=ModelPart(self.start, self.pooling, self.max_tokens, trust_pickle=self.trust_pickle),
            data=(data,),
            training=TrainSettings(**settings),
            dev=None if self.dev is None else DevPart(self._scored(self.dev), self.every, self.patience),
            test=tuple(self._scored(file) for file in self.test),
        )

    def _scored(self, file: str) -> DataSource:
        from twinvec.data.roles import guess_source

        return guess_source(file, self.dev_columns, score_range=self.dev_score_range)


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """Where the model goes, and how often the run is saved on the way."""

    output: Path
    seeds: int
    checkpoint_every: int
    device: str
    force: bool


def run_training(recipe: Recipe | Path, output: OutputChoice, *, trust_pickle: bool = False) -> None:
    """Train, and show how it goes; of several processes, the first one talks."""
    import twinvec
    from twinvec.cli.screen import SoftStop, TrainingScreen
    from twinvec.training import RunOptions

    stop, is_quiet = SoftStop(), is_silent()
    device: Any = output.device  # click has checked the word
    options = RunOptions(output.checkpoint_every, force=output.force, device=device, should_stop=stop)
    if_interrupted(f"the same command goes on from the last checkpoint of {output.output}.")
    try:
        with TrainingScreen() as screen:
            twinvec.train(
                recipe,
                output.output,
                seeds=output.seeds,
                options=options,
                trust_pickle=trust_pickle,
                watch=None if is_quiet else screen.show,
            )
    except TwinvecError as error:
        if is_quiet:  # the first process says the same
            raise SystemExit(1) from error
        raise
    finally:
        stop.restore()


def is_silent() -> bool:
    """Whether a launcher started this process as one of several, and not as the first."""
    return int(os.environ.get("RANK", "0")) > 0


def _number(name: str, default: object, help: str, kind: Any = int) -> Decorator:  # noqa: ANN401 - a click type
    return click.option(f"--{name}", type=kind, default=default, show_default=default is not None, help=help)


def score_range(name: str, help: str) -> Decorator:
    """An option of two numbers."""
    return click.option(
        name, type=float, nargs=2, metavar="LOW HIGH", default=DEFAULT_SCORE_RANGE, show_default=True, help=help
    )


score_range_option = score_range("--score-range", "Lowest and highest possible score of FILE.")
matryoshka_option = click.option(
    "--matryoshka", type=click.IntRange(min=1), multiple=True, help="Also train the vectors cut to this width."
)
COUNT = click.IntRange(min=1)
TRAIN_OPTIONS: dict[str, Decorator] = {
    "start": click.option(
        "-m",
        "--model",
        "start",
        default=DEFAULT_MODEL,
        show_default=True,
        metavar="MODEL",
        envvar=MODEL_VARIABLE,
        show_envvar=True,
        help="Model to start from: a folder or a name, also of any encoder of transformers.",
    ),
    "pooling": click.option(
        "--pooling", type=click.Choice(POOLINGS), help="Default: the model's own; mean for a bare backbone."
    ),
    "max_tokens": _number("max-tokens", None, "Cut texts to this many tokens. Default: the model's limit.", COUNT),
    "trust_pickle": click.option(
        "--trust-pickle", is_flag=True, help="Also start from weights stored as a pickle, which can run code."
    ),
    "dev": click.option(
        "--dev",
        metavar="FILE",
        help="Choose the best weights by this file: scored pairs, triplets, or anchors with positives.",
    ),
    "dev_columns": click.option(
        "--dev-columns",
        multiple=True,
        metavar="ROLE=COLUMN",
        callback=parse_columns,
        help="Columns of dev and test files, as --columns.",
    ),
    "dev_score_range": score_range("--dev-score-range", "Lowest and highest possible score of dev and test files."),
    "every": click.option(
        "--dev-every", "every", type=COUNT, help="Steps between dev scores. Default: ten in the run."
    ),
    "patience": _number("patience", None, "Stop after this many dev scores that are not better.", COUNT),
    "test": click.option(
        "--test", multiple=True, metavar="FILE", help="Score the result on this file; may be given several times."
    ),
    "epochs": _number("epochs", 1, "Passes over the data.", COUNT),
    "batch_size": _number("batch-size", 16, "Examples per batch, over all processes.", COUNT),
    "learning_rate": _number("learning-rate", 2e-5, "Highest learning rate.", float),
    "warmup": _number("warmup", 0.1, "Share of the steps over which the rate rises.", float),
    "weight_decay": _number("weight-decay", 0.0, "AdamW's weight decay.", float),
    "max_grad_norm": _number("max-grad-norm", 1.0, "Longer gradients are cut to this length; 0 leaves them.", float),
    "accumulation": _number("accumulation", 1, "Batches whose gradients make one step.", COUNT),
    "cached_texts": _number(
        "cached-texts", None, "Texts encoded at once; larger batches take two passes (gradient caching).", COUNT
    ),
    "max_steps": _number("max-steps", None, "Stop after this many steps.", COUNT),
    "dropout": _number("dropout", None, "Replaces all dropout rates of the model.", float),
    "precision": click.option(
        "--precision",
        type=click.Choice(TRAIN_PRECISIONS),
        default="float32",
        show_default=True,
        help="Arithmetic. Weights are always float32.",
    ),
    "seed": _number("seed", 0, "Decides the order of the data, dropout and new layers.", click.IntRange(min=0)),
}
OUTPUT_OPTIONS: dict[str, Decorator] = {
    "output": click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder for the model. During training, FOLDER.run holds the checkpoint.",
    ),
    "seeds": _number("seeds", 1, "Train with this many seeds; report mean and deviation, keep the best.", COUNT),
    "checkpoint_every": _number("checkpoint-every", 500, "Steps between checkpoints.", COUNT),
    "device": click.option(
        "--device",
        type=click.Choice(TRAIN_DEVICES),
        default="auto",
        show_default=True,
        help="Where to train; auto uses a CUDA device if there is one.",
    ),
    "force": click.option(
        "--force",
        is_flag=True,
        help="Overwrite a model that Twinvec wrote, and discard an unfinished run of another recipe.",
    ),
}


# A student learns from every text, and takes larger steps than a model that is fine-tuned.
DISTILL_OPTIONS = TRAIN_OPTIONS | {
    "start": click.option("-m", "--model", "start", default="", metavar="MODEL", help="Model to teach."),
    "batch_size": _number("batch-size", 64, "Texts per batch, over all processes.", COUNT),
    "learning_rate": _number("learning-rate", 3e-4, "Highest learning rate.", float),
}


train_options: Callable[[Any], Any] = gathered(TRAIN_OPTIONS, "choice", build=TrainChoice)
distill_options: Callable[[Any], Any] = gathered(DISTILL_OPTIONS, "choice", build=TrainChoice)
output_options: Callable[[Any], Any] = gathered(OUTPUT_OPTIONS, "output", build=OutputChoice)
