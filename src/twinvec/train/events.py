"""What a run tells while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twinvec.train.loop import StepReport

__all__ = ["DevReport", "Event", "Finished", "Score", "Started"]


@dataclass(frozen=True, slots=True)
class Score:
    """A number that names its protocol and its data."""

    data: str
    protocol: str
    value: float


@dataclass(frozen=True, slots=True)
class Started:
    """The run is about to take its first step, or its next. ``first`` is the dev score before any training."""

    step: int
    n_steps: int
    n_rows: int
    n_texts: int
    is_packed: bool
    first: Score | None


@dataclass(frozen=True, slots=True)
class DevReport:
    """A dev score was taken."""

    step: int
    score: float
    is_best: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The model is written. ``step`` is that of the weights that were kept; ``scores`` are dev's, then the tests'."""

    folder: Path
    step: int
    scores: tuple[Score, ...]
    seconds: float


Event = Started | StepReport | DevReport | Finished
