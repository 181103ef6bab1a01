"""Options of the training commands, and the object that turns them into a recipe."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.choices import (
    DEFAULT_MODEL,
    DEFAULT_SCORE_RANGE,
    NETWORK_KINDS,
    POOLINGS,
    TRAIN_DEVICES,
    TRAIN_PRECISIONS,
)
from twinvec.cli.options import (
    MODEL_VARIABLE,
    Columns,
    Decorator,
    columns_option,
    option_group,
    out_option,
    parse_columns,
)
from twinvec.cli.screen import if_interrupted
from twinvec.errors import TwinvecError

if TYPE_CHECKING:
    from twinvec.choices import ExampleKind, NetworkKind
    from twinvec.training import DataPart, DataSource, Recipe

__all__ = [
    "OutputChoice",
    "TrainChoice",
    "TrainData",
    "data_options",
    "distill_options",
    "output_options",
    "run_training",
    "score_range_option",
    "train_options",
]


@dataclass(frozen=True, slots=True)
class TrainChoice:
    """The initial model, the training settings, and the files to evaluate on."""

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
    network: NetworkKind
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
            raise click.UsageError("--dev-every and --patience require --dev FILE.")

    def recipe(self, data: DataPart) -> Recipe:
        """The recipe for one data set."""
        from twinvec.training import DevPart, ModelPart, Recipe, TrainSettings

        settings: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(TrainSettings) if each.name != "mixing"
        }
        return Recipe(
            model=ModelPart(
                self.start, self.pooling, self.max_tokens, trust_pickle=self.trust_pickle, network=self.network
            ),
            data=(data,),
            training=TrainSettings(**settings),
            dev=None if self.dev is None else DevPart(self._scored(self.dev), self.every, self.patience),
            test=tuple(self._scored(file) for file in self.test),
        )

    def _scored(self, file: str) -> DataSource:
        from twinvec.data.roles import guess_source

        return guess_source(file, self.dev_columns, score_range=self.dev_score_range)


@dataclass(frozen=True, slots=True)
class TrainData:
    """The training file, its columns, and the widths to train."""

    file: str
    columns: Columns
    matryoshka: tuple[int, ...]

    def part(
        self,
        kind: ExampleKind,
        objective: str,
        options: dict[str, Any],
        *,
        teachers: tuple[str, ...] = (),
        **source: Any,  # noqa: ANN401 - settings of DataSource
    ) -> DataPart:
        """The data part of a recipe."""
        from twinvec.training import DataPart, DataSource

        data = DataSource(self.file, kind, self.columns, **source)
        return DataPart(data, objective, options, self.matryoshka, teachers=teachers)


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """Where to write the model, and how to run the training."""

    out: Path
    seeds: int
    checkpoint_every: int
    device: str
    force: bool


def run_training(recipe: Recipe | Path, output: OutputChoice, *, trust_pickle: bool = False) -> None:
    """Train and show the progress; of several processes, only the first one prints."""
    import twinvec
    from twinvec.cli.screen import SoftStop, TrainingScreen
    from twinvec.training import RunOptions

    stop, is_quiet = SoftStop(), int(os.environ.get("RANK", "0")) > 0  # set by launchers of several processes
    device: Any = output.device  # click has checked the value
    options = RunOptions(output.checkpoint_every, force=output.force, device=device, should_stop=stop)
    if_interrupted(f"Run the same command again to continue from the last checkpoint of {output.out}.")
    try:
        with TrainingScreen() as screen:
            twinvec.train(
                recipe,
                output.out,
                seeds=output.seeds,
                options=options,
                trust_pickle=trust_pickle,
                watch=None if is_quiet else screen.show,
            )
    except TwinvecError as error:
        if is_quiet:  # the first process prints the error
            raise SystemExit(1) from error
        raise
    finally:
        stop.restore()


def _number(name: str, default: object, help: str, kind: Any = int) -> Decorator:  # noqa: ANN401 - a click type
    return click.option(f"--{name}", type=kind, default=default, help=help)


def score_range(name: str, help: str) -> Decorator:
    """An option for the lowest and the highest score."""
    return click.option(name, type=float, nargs=2, metavar="LOW HIGH", default=DEFAULT_SCORE_RANGE, help=help)


score_range_option = score_range("--score-range", "Lowest and highest possible score in FILE.")
COUNT = click.IntRange(min=1)
DATA_OPTIONS: dict[str, Decorator] = {
    "file": click.argument("file"),
    "columns": columns_option,
    "matryoshka": click.option(
        "--matryoshka", type=COUNT, multiple=True, help="Also train the vectors truncated to this width. Repeatable."
    ),
}
TRAIN_OPTIONS: dict[str, Decorator] = {
    "start": click.option(
        "-m",
        "--model",
        "start",
        default=DEFAULT_MODEL,
        metavar="MODEL",
        envvar=MODEL_VARIABLE,
        show_envvar=True,
        help="Initial model: a folder or a name; any encoder of transformers works.",
    ),
    "pooling": click.option(
        "--pooling",
        type=click.Choice(POOLINGS),
        help="Pooling of token states. Default: the model's own, or mean for a backbone without one.",
    ),
    "max_tokens": _number("max-tokens", None, "Cut texts to this many tokens. Default: the model's limit.", COUNT),
    "trust_pickle": click.option(
        "--trust-pickle", is_flag=True, help="Allow weights stored as a pickle. Loading a pickle can run code."
    ),
    "dev": click.option(
        "--dev",
        metavar="FILE",
        help="Keep the weights that score best on this file: scored pairs, triplets, or anchors with positives.",
    ),
    "dev_columns": click.option(
        "--dev-columns",
        multiple=True,
        metavar="ROLE=COLUMN",
        callback=parse_columns,
        help="Like --columns, for the dev and test files. Repeatable.",
    ),
    "dev_score_range": score_range("--dev-score-range", "Lowest and highest possible score in the dev and test files."),
    "every": click.option(
        "--dev-every", "every", type=COUNT, help="Steps between dev scores. Default: ten scores per run."
    ),
    "patience": _number("patience", None, "Stop after this many dev scores without improvement.", COUNT),
    "test": click.option("--test", multiple=True, metavar="FILE", help="Evaluate the result on this file. Repeatable."),
    "network": click.option(
        "--network",
        type=click.Choice(NETWORK_KINDS),
        default="bi-encoder",
        help="What to train. A cross-encoder reads two texts together and returns a score or labels.",
    ),
    "epochs": _number("epochs", 1, "Passes over the data.", COUNT),
    "batch_size": _number("batch-size", 16, "Examples per batch, over all processes.", COUNT),
    "learning_rate": _number("learning-rate", 2e-5, "Highest learning rate.", float),
    "warmup": _number("warmup", 0.1, "Share of the steps over which the learning rate rises.", float),
    "weight_decay": _number("weight-decay", 0.0, "AdamW's weight decay.", float),
    "max_grad_norm": _number("max-grad-norm", 1.0, "Clip gradients to this norm; 0 disables clipping.", float),
    "accumulation": _number("accumulation", 1, "Batches per optimizer step (gradient accumulation).", COUNT),
    "cached_texts": _number(
        "cached-texts", None, "Texts to encode at a time; larger batches take two passes (gradient caching).", COUNT
    ),
    "max_steps": _number("max-steps", None, "Stop after this many steps.", COUNT),
    "dropout": _number("dropout", None, "Dropout rate, instead of the model's own.", float),
    "precision": click.option(
        "--precision",
        type=click.Choice(TRAIN_PRECISIONS),
        default="float32",
        help="Arithmetic during training. Weights are always float32.",
    ),
    "seed": _number("seed", 0, "Random seed of the data order, dropout and new layers.", click.IntRange(min=0)),
}
OUTPUT_OPTIONS: dict[str, Decorator] = {
    "out": out_option(
        "FOLDER",
        "Folder for the model. During training, FOLDER.run holds the checkpoint.",
        required=True,
        type=click.Path(path_type=Path),
    ),
    "seeds": _number(
        "seeds", 1, "Train with this many seeds, report mean and deviation, and keep the best model.", COUNT
    ),
    "checkpoint_every": _number("checkpoint-every", 500, "Steps between checkpoints.", COUNT),
    "device": click.option(
        "--device",
        type=click.Choice(TRAIN_DEVICES),
        default="auto",
        help="Device to train on; auto uses CUDA if available.",
    ),
    "force": click.option(
        "--force",
        is_flag=True,
        help="Overwrite a model written by Twinvec, and discard an unfinished run of another recipe.",
    ),
}


# A student learns from every text, and takes larger steps than in fine-tuning.
DISTILL_OPTIONS = TRAIN_OPTIONS | {
    "start": click.option(
        "-m",
        "--model",
        "start",
        default="",
        show_default=False,
        metavar="MODEL",
        help="Model to train: a folder or a name.",
    ),
    "batch_size": _number("batch-size", 64, "Texts per batch, over all processes.", COUNT),
    "learning_rate": _number("learning-rate", 3e-4, "Highest learning rate.", float),
}


data_options = option_group(DATA_OPTIONS, "data", build=TrainData)
train_options = option_group(TRAIN_OPTIONS, "choice", build=TrainChoice)
distill_options = option_group(DISTILL_OPTIONS, "choice", build=TrainChoice)
output_options = option_group(OUTPUT_OPTIONS, "output", build=OutputChoice)
