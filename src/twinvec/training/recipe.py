"""A recipe: the start model, the data with their objectives, and the settings. Frozen, and checked on creation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from twinvec.choices import (
    DEFAULT_MODEL,
    NETWORK_KINDS,
    POOLINGS,
    NetworkKind,
    Precision,
    StoredPrecision,
    TeacherSpace,
)
from twinvec.data.roles import DataSource
from twinvec.errors import InputError, UnknownNameError, check_name
from twinvec.model.poly_encoder import MAX_CODES
from twinvec.training.batches import Mixing
from twinvec.training.dev_score import dev_kinds
from twinvec.training.objectives import NETWORK_OBJECTIVES
from twinvec.training.objectives.common import above_zero, true_or_false
from twinvec.training.objectives.matryoshka import check_widths
from twinvec.training.processes import seeded

__all__ = [
    "WORD_NETWORKS",
    "DataPart",
    "DevPart",
    "ModelPart",
    "Recipe",
    "TrainSettings",
    "as_tuple",
    "check_count",
    "learning_rate",
]

POOLED: tuple[NetworkKind, ...] = ("bi-encoder", "poly-encoder")  # networks whose pooling can be chosen
TrainPrecision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Settings of a training run. Reimers & Gurevych (2019), section 3.1.

    ``batch_size`` counts the examples of all processes together; ``warmup`` is a share of the steps; a
    ``max_grad_norm`` of 0 disables clipping; ``dropout`` replaces all rates of the model; ``cached_texts`` is how many
    texts to encode at a time, with two passes over larger batches.
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
    """Refuse a value that is not a whole number of at least 1; None is allowed if ``optional``."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")


def _check_number(name: str, value: object, *, low: float, high: float) -> None:
    if value is None and name == "dropout":
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}.")


def learning_rate(step: int, n_steps: int, settings: TrainSettings) -> float:
    """The learning rate of a step, counted from 0: linear warm-up, then linear decay toward 0.

    >>> [learning_rate(step, 4, TrainSettings(learning_rate=1.0, warmup=0.5)) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    n_warm = round(settings.warmup * n_steps)
    if step < n_warm:
        return settings.learning_rate * (step + 1) / n_warm
    return settings.learning_rate * (n_steps - step) / (n_steps - n_warm)


Keep = Literal["best", "last"]
WORD_NETWORKS: tuple[NetworkKind, ...] = ("infersent", "dan")
# Settings of [model] and the networks that have them.
WORD_SETTINGS: dict[str, tuple[NetworkKind, ...]] = {
    "hidden": WORD_NETWORKS,
    "train_words": WORD_NETWORKS,
    "buckets": ("dan",),
}


def as_tuple(values: object, name: str) -> tuple[Any, ...]:
    """Return a list as a tuple; a string is not a list of its letters.

    >>> as_tuple(["a", "b"], "teachers")
    ('a', 'b')
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {values!r}.", hint=f"Write [{values!r}].")
    return tuple(values)


@dataclass(frozen=True, slots=True)
class ModelPart:
    """The model to start from, and the kind of ``network`` to train.

    By default, ``pooling`` and ``max_tokens`` are the model's own.

    ``layers`` are the layers to keep, counted from 0, ``feed_forward`` the number of neurons to keep in each
    feed-forward layer, and ``special_tokens`` those to keep around a text; by default, all. ``projection`` adds a
    square matrix after the pooling, which starts with the best linear map to the first teacher's vectors. ``static``
    trains a table of token vectors of this width instead of a bi-encoder; a table to start from keeps its width.
    ``stored`` is the precision of the saved weights.
    ``codes`` is the number of codes of a poly-encoder.

    ``infersent`` and ``dan`` start from word vectors. ``hidden`` is the number of states of the LSTM in each direction,
    or the width of DAN's layers; ``buckets`` the number of DAN's bigram vectors; ``train_words`` whether to change the
    word vectors too, by default only in DAN.
    """

    start: str
    pooling: str | None = None
    max_tokens: int | None = None
    layers: tuple[int, ...] = ()
    feed_forward: int | None = None
    special_tokens: tuple[str, ...] = ()
    projection: bool = False
    static: int | None = None
    stored: StoredPrecision = "float32"
    trust_pickle: bool = False
    network: NetworkKind = "bi-encoder"
    codes: int | None = None
    hidden: int | None = None
    buckets: int | None = None
    train_words: bool | None = None

    def __post_init__(self) -> None:
        check_name("network", self.network, NETWORK_KINDS)
        if self.pooling is not None:
            check_name("pooling", self.pooling, POOLINGS)
        if not isinstance(self.start, str) or not self.start:
            raise InputError(f"start must be the folder or name of a model, got {self.start!r:.60}.")
        true_or_false("trust_pickle", self.trust_pickle)
        true_or_false("projection", self.projection)
        if self.max_tokens is not None and (not isinstance(self.max_tokens, int) or self.max_tokens < 3):
            raise InputError(f"max_tokens must be a whole number of at least 3, got {self.max_tokens!r}.")
        object.__setattr__(self, "layers", as_tuple(self.layers, "layers"))
        object.__setattr__(self, "special_tokens", as_tuple(self.special_tokens, "special_tokens"))
        if not all(isinstance(layer, int) and not isinstance(layer, bool) for layer in self.layers):
            raise InputError(f"layers must be whole numbers, got {list(self.layers)}.")
        if not all(isinstance(token, str) for token in self.special_tokens):
            raise InputError(f"special_tokens must be strings, got {list(self.special_tokens)!r:.80}.")
        for name in ("feed_forward", "static", "hidden", "buckets", "codes"):
            check_count(name, getattr(self, name), optional=True)
        check_name("stored", self.stored, get_args(StoredPrecision))
        self._check_network()

    def _check_network(self) -> None:
        if self.static is not None and (self.is_smaller or self.pooling or self.projection):
            raise InputError("A static model has no layers, feed_forward, special_tokens, pooling or projection.")
        is_pooled = self.network in POOLED
        if self.network != "bi-encoder" and (self.static or self.projection or (self.pooling and not is_pooled)):
            raise InputError(
                f"A {self.network} has no pooling or static, and no projection.", hint="Remove these settings."
            )
        if self.codes is not None and (self.network != "poly-encoder" or self.codes > MAX_CODES):
            raise InputError(
                f"codes is {self.codes} for a {self.network}.", hint=f"A poly-encoder has 1 to {MAX_CODES} codes."
            )
        if self.train_words is not None:
            true_or_false("train_words", self.train_words)
        for name, networks in WORD_SETTINGS.items():
            if getattr(self, name) is not None and self.network not in networks:
                raise InputError(f"{name} is a setting of {' and '.join(networks)}, not of a {self.network}.")
        if self.network in WORD_NETWORKS and self.is_smaller:
            raise InputError(f"The network {self.network!r} has no layers, feed_forward or special_tokens to keep.")

    @property
    def is_smaller(self) -> bool:
        """Whether only a part of the start model is kept."""
        return bool(self.layers or self.special_tokens) or self.feed_forward is not None


@dataclass(frozen=True, slots=True)
class DataPart:
    """A data set and its objective.

    For distillation, ``teachers`` are models that run in ``teacher_precision``; in the ``teacher_space`` "principal",
    each teacher's vectors are centered and turned to their principal axes, so that the cosines of all teachers have a
    similar spread, and the first values of a vector matter most. ``similar`` is how many texts with similar vectors
    share a batch: random texts are hardly similar, and teach little about similarity. For ``cosine`` and ``cosent``
    over texts, they are scorers, and score ``mined`` pairs of each text with others, which the model ``miner`` finds
    similar (augmented SBERT).
    """

    source: DataSource
    objective: str
    options: Mapping[str, object] = field(default_factory=dict)
    matryoshka: tuple[int, ...] = ()
    share: float = 1.0
    teachers: tuple[str, ...] = ()
    teacher_precision: Precision = "float32"
    teacher_space: TeacherSpace = "own"
    similar: int = 1
    mined: int = 4
    miner: str = DEFAULT_MODEL

    @property
    def is_mined(self) -> bool:
        """Whether pairs are made from texts and scored by the teachers."""
        return self.source.kind == "texts" and self.objective in ("cosine", "cosent")

    def __post_init__(self) -> None:
        check_count("mined", self.mined, optional=False)
        check_count("similar", self.similar, optional=False)
        if not isinstance(self.miner, str) or not self.miner:
            raise InputError(f"miner must be the folder or name of a model, got {self.miner!r:.60}.")
        for name in ("matryoshka", "teachers"):
            object.__setattr__(self, name, as_tuple(getattr(self, name), name))
        if self.matryoshka:
            check_widths(self.matryoshka)
        if self.teacher_precision not in get_args(Precision):
            raise UnknownNameError("teacher_precision", self.teacher_precision, get_args(Precision))
        check_name("teacher_space", self.teacher_space, get_args(TeacherSpace))
        if not isinstance(self.options, Mapping):
            raise InputError(f"options must be a table, got {self.options!r:.60}.", hint="Write {margin = 0.5}.")
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in self.options.items()}
        object.__setattr__(self, "options", options)
        above_zero("share", self.share)

    def check(self, network: NetworkKind) -> None:
        """Refuse an objective, options, examples or teachers that do not fit the kind of network."""
        kinds = NETWORK_OBJECTIVES[network]
        check_name(f"objective of a {network}:", self.objective, kinds)
        kind = kinds[self.objective]
        if self.matryoshka and network in ("cross-encoder", "poly-encoder"):
            raise InputError(f"A {network} does not train shorter vectors.", hint="Remove matryoshka.")
        if (self.teacher_space != "own" or self.similar > 1) and self.objective != "distillation":
            raise InputError(
                f"The objective {self.objective!r} has no teacher_space and no similar.", hint="Remove these settings."
            )
        with seeded(0):  # builds an objective only to check its options
            widths = (8,) * max(1, len(self.teachers))
            kind.build({"width": 8, "n_labels": 3, "teacher_widths": widths, "attention": 1.0}, self.options)
        if self.source.kind not in kind.kinds:
            wanted = " or ".join(kind.kinds)
            raise InputError(f"The objective {self.objective!r} requires {wanted}, got {self.source.kind}.")
        if (self.source.kind in kind.taught) != bool(self.teachers):
            taught = " or ".join(kind.taught) or "no examples"
            raise InputError(
                f"The objective {self.objective!r} does not work with the teachers {list(self.teachers)}.",
                hint=f"It requires at least one teacher for {taught}, and none for others.",
            )


@dataclass(frozen=True, slots=True)
class DevPart:
    """The dev data, scored every ``every`` steps (default: ten times per run), and which weights to keep.

    With ``keep="last"``, the dev score is only reported; use it if the dev set does not cover what is trained.
    """

    source: DataSource
    every: int | None = None
    patience: int | None = None
    keep: Keep = "best"

    def __post_init__(self) -> None:
        for name in ("every", "patience"):
            check_count(name, getattr(self, name), optional=True)
        if self.keep not in get_args(Keep):
            raise UnknownNameError("keep in [dev]:", self.keep, get_args(Keep))
        if self.keep == "last" and self.patience is not None:
            raise InputError(
                f"keep = 'last' does not work with patience = {self.patience}.",
                hint="patience implies keep = 'best'; remove one of the two.",
            )


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that determines the trained model."""

    model: ModelPart
    data: tuple[DataPart, ...]
    training: TrainSettings = field(default_factory=TrainSettings)
    dev: DevPart | None = None
    test: tuple[DataSource, ...] = ()

    def __post_init__(self) -> None:
        if not self.data:
            raise InputError("A recipe requires at least one data set.", hint="Add a table [[data]] with a file.")
        network = self.model.network
        for part in self.data:
            part.check(network)
        if self.model.projection and self.data[0].objective != "distillation":
            raise InputError(
                "A projection starts with the best map to the first teacher's vectors, but the first data set has the "
                f"objective {self.data[0].objective!r}.",
                hint="Put a data set with the objective 'distillation' first, or remove projection.",
            )
        named = [("test", source) for source in self.test] + ([("dev", self.dev.source)] if self.dev else [])
        for use, source in named:
            check_name(f"kind of {use} examples of a {network}:", source.kind, dev_kinds(network))
