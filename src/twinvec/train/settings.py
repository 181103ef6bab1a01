"""How to train; says neither what nor from what. The defaults are those of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from twinvec.errors import InputError, UnknownNameError
from twinvec.train.sampling import Mixing

__all__ = ["TrainSettings", "check_count", "learning_rate"]

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
