"""Every error that Twinvec raises on purpose.

TwinvecError                      catches them all
├── InputError        ValueError  a text, an option or a file that the user gave
│   └── RowError      ValueError  one row of a file; the rows after it may be good
├── UnknownNameError  LookupError a name that is not among the known ones
├── ModelFolderError  ValueError  a model folder that cannot be read as one
│   └── WeightsError  ValueError  weights that are missing, corrupt, or not those of the config
├── ModelNotFoundError LookupError no such folder, and no such model in the cache or on the hub
├── TextTooLongError  ValueError  a text beyond the model's limit, with ``long="error"``
├── TrainingError     RuntimeError a run that cannot go on, or a checkpoint that is not this run's
├── CollectionError   RuntimeError a collection that is damaged, busy, full, or of another model
├── DeviceError       RuntimeError a device, precision or runtime that this machine does not have
└── MissingExtraError ImportError  an optional package is not installed
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "CollectionError",
    "DeviceError",
    "InputError",
    "MissingExtraError",
    "ModelFolderError",
    "ModelNotFoundError",
    "RowError",
    "TextTooLongError",
    "TrainingError",
    "TwinvecError",
    "UnknownNameError",
    "WeightsError",
    "check_at_least",
    "check_name",
    "shown",
]


class TwinvecError(Exception):
    """Base class: ``except TwinvecError`` catches all that Twinvec raises on purpose."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{problem} {hint}".strip())
        self.problem = problem
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel between processes, whatever their class's own arguments were."""
        return _rebuilt, (type(self), self.problem, self.hint)


def shown(value: object, length: int = 60) -> str:
    """A value as messages show it, cut to a length; also one whose ``repr`` fails or is endless.

    >>> shown("a"), shown(list(range(100)), 12), shown(10**5000)
    ("'a'", '[0, 1, 2,...', 'a value of type int')
    """
    try:
        text = repr(value)
    except Exception:  # a message about a bad value must not fail because of it
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def check_at_least(least: float, **values: float | None) -> None:
    """Refuse settings below the least that they may be; None is one that was not given.

    >>> check_at_least(1, k=0)
    Traceback (most recent call last):
    twinvec.errors.InputError: k must be at least 1, got 0.
    """
    for name, value in values.items():
        if value is not None and value < least:
            raise InputError(f"{name} must be at least {least}, got {shown(value)}.")


def check_name(kind: str, name: object, known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones."""
    choices = tuple(known)
    if name not in choices:
        raise UnknownNameError(kind, name, choices)


def _rebuilt(kind: type[TwinvecError], problem: str, hint: str) -> TwinvecError:
    error = kind.__new__(kind)
    TwinvecError.__init__(error, problem, hint=hint)
    return error


class InputError(TwinvecError, ValueError):
    """Something the user gave (a text, an option, a file) is not usable."""


class RowError(InputError):
    """One row of a file is not usable. ``fault`` names the kind of error in the same words for all such rows."""

    def __init__(self, problem: str, *, fault: str = "bad row", hint: str = "") -> None:
        super().__init__(problem, hint=hint)
        self.fault = fault


class UnknownNameError(TwinvecError, LookupError):
    """A name is not among the known ones; says which are, and which is nearest. ``note`` is what else to know."""

    def __init__(self, kind: str, name: object, known: Iterable[str], *, note: str = "") -> None:
        choices = sorted(known)
        close = get_close_matches(name[:200] if isinstance(name, str) else shown(name), choices, n=1)
        guess = f"Did you mean {close[0]!r}? " if close else ""
        super().__init__(
            f"Unknown {kind} {shown(name, 200)}.", hint=f"{guess}Choose from: {', '.join(choices)}. {note}".rstrip()
        )


class ModelFolderError(TwinvecError, ValueError):
    """A folder cannot be read as a model."""


class WeightsError(ModelFolderError):
    """Weights are missing, truncated, corrupt, or do not belong to the config."""


class ModelNotFoundError(TwinvecError, LookupError):
    """No folder of that name, and no model of that name in the cache or on the hub."""


class TextTooLongError(TwinvecError, ValueError):
    """A text has more tokens than the model reads, and ``long="error"`` was asked for."""


class TrainingError(TwinvecError, RuntimeError):
    """A training run cannot go on, or a checkpoint belongs to another run."""


class CollectionError(TwinvecError, RuntimeError):
    """A collection cannot be read or written: it is damaged, another process has it, or it is of another model."""


class DeviceError(TwinvecError, RuntimeError):
    """This machine lacks the device, precision or runtime that was asked for."""


class MissingExtraError(TwinvecError, ImportError):
    """An optional package is not installed."""
