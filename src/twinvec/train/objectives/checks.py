"""What an objective's settings may be. Each check returns the value, or says what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

from twinvec.errors import InputError, UnknownNameError

__all__ = ["above_zero", "at_least_zero", "names", "one_of", "whole", "yes_or_no"]


def above_zero(setting: str, value: object) -> float:
    """A finite number above 0.

    >>> above_zero("margin", 1)
    1.0
    """
    number = _number(value)
    if number is None or number <= 0:
        raise InputError(f"{setting} must be a number above 0, got {value!r}.")
    return number


def at_least_zero(setting: str, value: object) -> float:
    """A finite number of at least 0."""
    number = _number(value)
    if number is None or number < 0:
        raise InputError(f"{setting} must be a number of at least 0, got {value!r}.")
    return number


def whole(setting: str, value: object, *, least: int) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{setting} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def yes_or_no(setting: str, value: object) -> bool:
    """True or False, and nothing that merely counts as such."""
    if not isinstance(value, bool):
        raise InputError(f"{setting} must be true or false, got {value!r}.")
    return value


def one_of(setting: str, value: object, known: Iterable[str]) -> str:
    """One of the known names."""
    choices = tuple(known)
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError(setting, value, choices)
    return value


def names(setting: str, value: object, known: Iterable[str]) -> tuple[str, ...]:
    """At least one of the known names, none of them twice.

    >>> names("features", ["u", "v"], ("u", "v", "|u-v|"))
    ('u', 'v')
    """
    choices = tuple(known)
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(
            f"{setting} must be a list of names, got {value!r}.", hint=f"Choose from: {', '.join(choices)}."
        )
    found = tuple(one_of(f"name in {setting}:", name, choices) for name in value)
    if len(set(found)) < len(found):
        raise InputError(f"{setting} must name each part once, got {value!r}.")
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number of too many digits
        return None
    return number if math.isfinite(number) else None
