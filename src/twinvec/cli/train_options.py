"""Options of the commands that train, gathered into one object that builds a recipe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.choices import DEFAULT_MODEL
from twinvec.cli.options import MODEL_VARIABLE, Decorator, gathered
from twinvec.cli.screen import if_interrupted
from twinvec.errors import TwinvecError

if TYPE_CHECKING:
    from twinvec.data.roles import DataSource
    from twinvec.training.recipe import DataPart, Recipe

__all__ = [
    "OutputChoice",
    "TrainChoice",
    "distil_options",
    "output_options",
    "parse_columns",
    "run_training",
    "train_options",
]

POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, slots=True)
class TrainChoice:
    """What to start from, how to train, and what to judge by."""

    start: str
    pooling: str | None
    max_tokens: int | None
    trust_pickle: bool
    dev: str | None
    dev_columns: tuple[str, ...]
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
        from twinvec.training.recipe import DevPart, ModelPart, Recipe, TrainSettings

        settings: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(TrainSettings) if each.name != "mixing"
        }
        return Recipe(
            model=ModelPart(self.start, self.pooling, self.max_tokens, trust_pickle=self.trust_pickle),
            data=(data,),
            training=TrainSettings(**settings),
            dev=None if self.dev is None else DevPart(self._judged(self.dev), self.every, self.patience),
            test=tuple(self._judged(file) for file in self.test),
        )

    def _judged(self, file: str) -> DataSource:
        from twinvec.data.read import open_table
        from twinvec.data.roles import DataSource, guess_kind

        columns = parse_columns(self.dev_columns)
        kind = guess_kind([*open_table(file).columns, *columns], source=file).name
        source = DataSource(file, kind, columns=columns)
        return replace(source, score_range=self.dev_score_range) if kind == "scored_pairs" else source


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """Where the model goes, and how often the run is saved on the way."""

    output: Path
    seeds: int
    checkpoint_every: int
    device: str
    force: bool


def parse_columns(given: tuple[str, ...]) -> dict[str, str | tuple[str, ...]]:
    """``role=column`` pairs as a mapping; a role given twice has several columns.

    >>> parse_columns(("premise=sentence1", "negative=n1", "negative=n2"))
    {'premise': 'sentence1', 'negative': ('n1', 'n2')}
    """
    found: dict[str, list[str]] = {}
    for pair in given:
        role, separator, column = pair.partition("=")
        if not separator or not role or not column:
            raise click.UsageError(f"--columns wants ROLE=COLUMN, such as premise=sentence1, got {pair!r}.")
        found.setdefault(role.strip(), []).append(column.strip())
    return {role: names[0] if len(names) == 1 else tuple(names) for role, names in found.items()}


def run_training(recipe: Recipe, output: OutputChoice) -> None:
    """Train, and show how it goes; of several processes, the first one talks."""
    from twinvec.cli.screen import SoftStop, show_training
    from twinvec.training.run import RunOptions, run_recipe
    from twinvec.training.seeds import run_seeds

    stop = SoftStop()
    device: Any = output.device  # click has checked the word
    options = RunOptions(output.checkpoint_every, force=output.force, device=device, should_stop=stop)
    one = output.seeds == 1
    events = (
        run_recipe(recipe, output.output, options) if one else run_seeds(recipe, output.output, output.seeds, options)
    )
    if_interrupted(f"the same command goes on from the last checkpoint of {output.output}.")
    try:
        if is_silent():
            for _ in events:
                pass
        else:
            show_training(events)
    except TwinvecError as error:
        if is_silent():  # the first process says the same
            raise SystemExit(1) from error
        raise
    finally:
        stop.restore()


def is_silent() -> bool:
    """Whether a launcher started this as one of several processes, and not as the first."""
    return int(os.environ.get("RANK", "0")) > 0


def _number(name: str, default: object, help: str, kind: Any = int) -> Decorator:  # noqa: ANN401 - a click type
    return click.option(f"--{name}", type=kind, default=default, show_default=default is not None, help=help)


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
        "--dev-columns", multiple=True, metavar="ROLE=COLUMN", help="Columns of dev and test files, as --columns."
    ),
    "dev_score_range": click.option(
        "--dev-score-range",
        type=float,
        nargs=2,
        default=(0.0, 5.0),
        show_default=True,
        help="Lowest and highest score of dev and test files.",
    ),
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
        type=click.Choice(PRECISIONS),
        default="float32",
        show_default=True,
        help="Arithmetic. Weights are float32 always.",
    ),
    "seed": _number("seed", 0, "Order of the data, dropout and new layers follow from it.", click.IntRange(min=0)),
}
OUTPUT_OPTIONS: dict[str, Decorator] = {
    "output": click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder of the model to be. While it is trained, FOLDER.run holds the checkpoint.",
    ),
    "seeds": _number("seeds", 1, "Train with this many seeds; report mean and deviation, keep the best.", COUNT),
    "checkpoint_every": _number("checkpoint-every", 500, "Steps between checkpoints.", COUNT),
    "device": click.option(
        "--device",
        type=click.Choice(("auto", "cpu", "cuda")),
        default="auto",
        show_default=True,
        help="Where to train; auto takes a CUDA device if there is one.",
    ),
    "force": click.option(
        "--force",
        is_flag=True,
        help="Replace a model that Twinvec wrote, and drop an unfinished run of another recipe.",
    ),
}


# A student learns from every text, and bears larger steps than a model that is tuned.
DISTIL_OPTIONS = TRAIN_OPTIONS | {
    "start": click.option("-m", "--model", "start", default="", metavar="MODEL", help="Model to teach."),
    "batch_size": _number("batch-size", 64, "Texts per batch, over all processes.", COUNT),
    "learning_rate": _number("learning-rate", 3e-4, "Highest learning rate.", float),
}


train_options: Callable[[Any], Any] = gathered(TRAIN_OPTIONS, "choice", build=TrainChoice)
distil_options: Callable[[Any], Any] = gathered(DISTIL_OPTIONS, "choice", build=TrainChoice)
output_options: Callable[[Any], Any] = gathered(OUTPUT_OPTIONS, "output", build=OutputChoice)
