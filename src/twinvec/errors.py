"""All errors that Twinvec raises on purpose.

TwinvecError                      base class
├── InputError        ValueError  an unusable text, option or file
│   └── RowError      ValueError  an unusable row of a file; later rows may be fine
├── UnknownNameError  LookupError an unknown name
├── ModelFolderError  ValueError  a folder that cannot be read as a model
│   └── WeightsError  ValueError  weights that are missing, corrupt, or do not match the config
├── ModelNotFoundError LookupError no such folder, cached model or hub model
├── TextTooLongError  ValueError  a text over the model's limit, with ``long="error"``
├── UnknownScriptError ValueError a text in a script the model has no words for, with ``unknown="error"``
├── TrainingError     RuntimeError a run that cannot continue, or a checkpoint of another run
├── CollectionError   RuntimeError a collection that is damaged, locked, full, or made with another model
├── DeviceError       RuntimeError a device, precision or runtime this machine lacks
└── MissingExtraError ImportError  an optional package is not installed
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class TwinvecError(Exception):
    """Base class of all errors that Twinvec raises on purpose."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{problem} {hint}".strip())
        self.problem = problem
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the arguments of the subclass, so errors can cross processes."""
        return _rebuilt, (type(self), self.problem, self.hint)


def shown(value: object, length: int = 60) -> str:
    """The ``repr`` of a value for messages, cut to a length; never fails, even if ``repr`` does.

    >>> shown("a"), shown(list(range(100)), 12), shown(10**5000)
    ("'a'", '[0, 1, 2,...', 'a value of type int')
    """
    try:
        text = repr(value)
    except Exception:  # a message about a bad value must not fail itself
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def check_at_least(least: float, **values: float | None) -> None:
    """Raise InputError if a value is below ``least``; None means not set.

    >>> check_at_least(1, k=0)
    Traceback (most recent call last):
    twinvec.errors.InputError: k must be at least 1, got 0.
    """
    for name, value in values.items():
        if value is not None and value < least:
            raise InputError(f"{name} must be at least {least}, got {shown(value)}.")


def check_name(kind: str, name: object, known: Iterable[str]) -> None:
    """Raise UnknownNameError unless ``name`` is in ``known``."""
    choices = tuple(known)
    if name not in choices:
        raise UnknownNameError(kind, name, choices)


def _rebuilt(kind: type[TwinvecError], problem: str, hint: str) -> TwinvecError:
    error = kind.__new__(kind)
    TwinvecError.__init__(error, problem, hint=hint)
    return error


class InputError(TwinvecError, ValueError):
    """A text, option or file from the user is not usable."""


class RowError(InputError):
    """A row of a file is not usable. ``fault`` names the kind of problem and is the same for all such rows."""

    def __init__(self, problem: str, *, fault: str = "bad row", hint: str = "") -> None:
        super().__init__(problem, hint=hint)
        self.fault = fault


class UnknownNameError(TwinvecError, LookupError):
    """A name is unknown. The message lists the known names and the closest match, then ``note``."""

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
    """There is no such folder, cached model or hub model."""


class TextTooLongError(TwinvecError, ValueError):
    """A text has more tokens than the model reads, and ``long="error"`` is set."""


class UnknownScriptError(TwinvecError, ValueError):
    """A text is in a script that the model has no words for, and ``unknown="error"`` is set."""


class TrainingError(TwinvecError, RuntimeError):
    """A training run cannot continue, or a checkpoint belongs to another run."""


class CollectionError(TwinvecError, RuntimeError):
    """A collection cannot be read or written: it is damaged, locked by another process, or made with another model."""


class DeviceError(TwinvecError, RuntimeError):
    """This machine lacks the requested device, precision or runtime."""


class MissingExtraError(TwinvecError, ImportError):
    """An optional package is not installed."""
