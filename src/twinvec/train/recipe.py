"""A recipe: from which model, on what data, with which objective, how. Frozen, checked, and the same as TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinvec.errors import InputError, UnknownNameError
from twinvec.examples import DataSource
from twinvec.model_folder import POOLING_MODES
from twinvec.train.judging import JUDGED_KINDS
from twinvec.train.objectives import OBJECTIVES
from twinvec.train.settings import TrainSettings

__all__ = ["DataPart", "DevPart", "ModelPart", "Recipe"]


@dataclass(frozen=True, slots=True)
class ModelPart:
    """The model to start from. ``pooling`` and ``max_tokens`` are the model's own unless given."""

    start: str
    pooling: str | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.pooling is not None and self.pooling not in POOLING_MODES:
            raise UnknownNameError("pooling", self.pooling, POOLING_MODES)
        if self.max_tokens is not None and self.max_tokens < 3:
            raise InputError(f"max_tokens must be at least 3, got {self.max_tokens}.")


@dataclass(frozen=True, slots=True)
class DataPart:
    """A data set and its objective. ``teachers`` are the models to learn from, for distillation."""

    source: DataSource
    objective: str
    options: Mapping[str, object] = field(default_factory=dict)
    matryoshka: tuple[int, ...] = ()
    share: float = 1.0
    teachers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownNameError("objective", self.objective, OBJECTIVES)
        wanted = OBJECTIVES[self.objective].examples
        if self.source.kind != wanted:
            raise InputError(f"The objective {self.objective!r} reads {wanted}, not {self.source.kind}.")
        if not self.share > 0:
            raise InputError(f"share must be more than 0, got {self.share}.")
        if (self.objective == "distillation") != bool(self.teachers):
            raise InputError(
                f"The objective {self.objective!r} with teachers {list(self.teachers)} makes no sense.",
                hint="Distillation needs at least one teacher; no other objective has any.",
            )


@dataclass(frozen=True, slots=True)
class DevPart:
    """What the best weights are chosen by. Judged every ``every`` steps (default: ten times in the run)."""

    source: DataSource
    every: int | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.source.kind not in JUDGED_KINDS:
            raise UnknownNameError("kind of dev examples:", self.source.kind, JUDGED_KINDS)
        for name in ("every", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}.")


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
            if source.kind not in JUDGED_KINDS:
                raise UnknownNameError("kind of test examples:", source.kind, JUDGED_KINDS)
