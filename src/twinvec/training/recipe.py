"""A recipe: the model to start from, the data, the objective, the settings. Frozen and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from twinvec.choices import POOLINGS, Precision, StoredPrecision
from twinvec.data.roles import DataSource
from twinvec.errors import InputError, UnknownNameError
from twinvec.training.batches import Mixing
from twinvec.training.dev_score import DEV_SCORES
from twinvec.training.objectives import OBJECTIVES, build_objective
from twinvec.training.objectives.common import above_zero, yes_or_no
from twinvec.training.objectives.matryoshka import check_widths
from twinvec.training.processes import drawn_from

__all__ = [
    "DataPart",
    "DevPart",
    "ModelPart",
    "Recipe",
    "TrainSettings",
    "check_count",
    "learning_rate",
]

TrainPrecision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Settings of a training run. Reimers & Gurevych (2019), section 3.1.

    ``batch_size`` counts the examples of all processes together; ``warmup`` is a share of the steps; a
    ``max_grad_norm`` of 0 cuts no gradient; ``dropout`` replaces all rates of the model; ``cached_texts`` are encoded
    at once, and larger batches take two passes.
    """

    epochs: int = 1
    batch_size: int = 16
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    accumulation: int = 1
    max_steps: int | None = None
    dropout: float | None = None
    precision: TrainPrecision = "float32"
    cached_texts: int | None = None
    mixing: Mixing = "proportional"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulation", "max_steps", "cached_texts"):
            check_count(name, getattr(self, name), optional=name in ("max_steps", "cached_texts"))
        for name, low, high in (
            ("learning_rate", 0.0, 1.0),
            ("warmup", 0.0, 1.0),
            ("weight_decay", 0.0, 1.0),
            ("max_grad_norm", 0.0, 1e6),
            ("dropout", 0.0, 0.9),
        ):
            _check_number(name, getattr(self, name), low=low, high=high)
        for name, known in (("precision", get_args(TrainPrecision)), ("mixing", get_args(Mixing))):
            if getattr(self, name) not in known:
                raise UnknownNameError(name, getattr(self, name), known)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**63:
            raise InputError(f"seed must be a whole number from 0 to 2**63 - 1, got {self.seed!r:.60}.")


def check_count(name: str, value: object, *, optional: bool) -> None:
    """Refuse what is not a whole number from 1."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number from 1, got {value!r}.")


def _check_number(name: str, value: object, *, low: float, high: float) -> None:
    if value is None and name == "dropout":
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}.")


def learning_rate(step: int, n_steps: int, settings: TrainSettings) -> float:
    """The rate of a step, counted from 0: a linear rise over the warm-up, then a linear fall that would reach 0.

    >>> [learning_rate(step, 4, TrainSettings(learning_rate=1.0, warmup=0.5)) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    n_warm = round(settings.warmup * n_steps)
    if step < n_warm:
        return settings.learning_rate * (step + 1) / n_warm
    return settings.learning_rate * (n_steps - step) / (n_steps - n_warm)


Keep = Literal["best", "last"]


def listed(values: object, name: str) -> tuple[Any, ...]:
    """A list as a tuple; a bare text is not a list of its letters.

    >>> listed(["a", "b"], "teachers")
    ('a', 'b')
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {values!r}.", hint=f"Write [{values!r}].")
    return tuple(values)


@dataclass(frozen=True, slots=True)
class ModelPart:
    """The model to start from. ``pooling`` and ``max_tokens`` are the model's own unless given.

    ``layers`` are the layers to keep, counted from 0, ``feed_forward`` the neurons to keep in the feed-forward part of
    each, and ``special_tokens`` those to keep around a text; without them, all. ``static`` asks for a table of token
    vectors of this width instead. ``stored`` is how the weights of the result lie on the disk.
    """

    start: str
    pooling: str | None = None
    max_tokens: int | None = None
    layers: tuple[int, ...] = ()
    feed_forward: int | None = None
    special_tokens: tuple[str, ...] = ()
    static: int | None = None
    stored: StoredPrecision = "float32"
    trust_pickle: bool = False

    def __post_init__(self) -> None:
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise UnknownNameError("pooling", self.pooling, POOLINGS)
        if not isinstance(self.start, str) or not self.start:
            raise InputError(f"start must be the folder or the name of a model, got {self.start!r:.60}.")
        yes_or_no("trust_pickle", self.trust_pickle)
        if self.max_tokens is not None and (not isinstance(self.max_tokens, int) or self.max_tokens < 3):
            raise InputError(f"max_tokens must be a whole number from 3, got {self.max_tokens!r}.")
        object.__setattr__(self, "layers", listed(self.layers, "layers"))
        if not all(isinstance(layer, int) and not isinstance(layer, bool) for layer in self.layers):
            raise InputError(f"layers must be whole numbers, got {list(self.layers)}.")
        object.__setattr__(self, "special_tokens", listed(self.special_tokens, "special_tokens"))
        if not all(isinstance(token, str) for token in self.special_tokens):
            raise InputError(f"special_tokens must be texts, got {list(self.special_tokens)!r:.80}.")
        check_count("feed_forward", self.feed_forward, optional=True)
        check_count("static", self.static, optional=True)
        if self.static is not None and (self.is_smaller or self.pooling):
            raise InputError("A static model has neither layers, feed_forward, special_tokens nor a pooling.")
        if self.stored not in get_args(StoredPrecision):
            raise UnknownNameError("stored", self.stored, get_args(StoredPrecision))

    @property
    def is_smaller(self) -> bool:
        """Whether only a part of the start model is trained."""
        return bool(self.layers or self.special_tokens) or self.feed_forward is not None


@dataclass(frozen=True, slots=True)
class DataPart:
    """A data set and its objective.

    ``teachers`` are the models to learn from, for distillation; they run in ``teacher_precision``.
    """

    source: DataSource
    objective: str
    options: Mapping[str, object] = field(default_factory=dict)
    matryoshka: tuple[int, ...] = ()
    share: float = 1.0
    teachers: tuple[str, ...] = ()
    teacher_precision: Precision = "float32"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownNameError("objective", self.objective, OBJECTIVES)
        for name in ("matryoshka", "teachers"):
            object.__setattr__(self, name, listed(getattr(self, name), name))
        if self.matryoshka:
            check_widths(self.matryoshka)
        if self.teacher_precision not in get_args(Precision):
            raise UnknownNameError("teacher_precision", self.teacher_precision, get_args(Precision))
        if not isinstance(self.options, Mapping):
            raise InputError(f"options must be a table, got {self.options!r:.60}.", hint="Write {margin = 0.5}.")
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in self.options.items()}
        object.__setattr__(self, "options", options)
        with drawn_from(0):  # one is built only to hear what it says of its options
            build_objective(self.objective, width=8, options=options, n_labels=3, teacher_widths=(8,))
        wanted = OBJECTIVES[self.objective].examples
        if self.source.kind != wanted:
            raise InputError(f"The objective {self.objective!r} reads {wanted}, not {self.source.kind}.")
        above_zero("share", self.share)
        if (self.objective == "distillation") != bool(self.teachers):
            raise InputError(
                f"The objective {self.objective!r} with teachers {list(self.teachers)} makes no sense.",
                hint="Distillation needs at least one teacher; no other objective has any.",
            )


@dataclass(frozen=True, slots=True)
class DevPart:
    """The data that weights are scored on, every ``every`` steps (default: ten times in the run), and which are kept.

    ``keep="last"`` is for a dev set that shows less than what is learned: it stops nothing and chooses nothing.
    """

    source: DataSource
    every: int | None = None
    patience: int | None = None
    keep: Keep = "best"

    def __post_init__(self) -> None:
        if self.source.kind not in DEV_SCORES:
            raise UnknownNameError("kind of dev examples:", self.source.kind, DEV_SCORES)
        for name in ("every", "patience"):
            check_count(name, getattr(self, name), optional=True)
        if self.keep not in get_args(Keep):
            raise UnknownNameError("keep in [dev]:", self.keep, get_args(Keep))
        if self.keep == "last" and self.patience is not None:
            raise InputError(
                f"keep = 'last' with patience = {self.patience} makes no sense.",
                hint="patience implies keep = 'best'; remove one of the two.",
            )


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides what is trained."""

    model: ModelPart
    data: tuple[DataPart, ...]
    training: TrainSettings = field(default_factory=TrainSettings)
    dev: DevPart | None = None
    test: tuple[DataSource, ...] = ()

    def __post_init__(self) -> None:
        if not self.data:
            raise InputError("A recipe needs at least one data set.", hint="Add a table [[data]] with a file.")
        for source in self.test:
            if source.kind not in DEV_SCORES:
                raise UnknownNameError("kind of test examples:", source.kind, DEV_SCORES)
