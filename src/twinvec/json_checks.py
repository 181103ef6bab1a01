"""What a JSON file of ours must hold, checked once where it is read: which keys, and what each value is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from twinvec.errors import InputError

__all__ = ["Check", "check_object", "is_count", "is_map", "is_positive", "is_text", "matching", "one_of"]

Check = Callable[[object], bool]
MOST = 2**53  # beyond, JSON's readers do not agree on a number


def check_object(content: object, checks: Mapping[str, Check], where: str, *, hint: str = "") -> dict[str, Any]:
    """The object, if it has just these keys and every value passes its check.

    >>> check_object({"rows": 3}, {"rows": is_count}, "manifest.json")
    {'rows': 3}
    >>> check_object({"rows": -3}, {"rows": is_count}, "manifest.json")
    Traceback (most recent call last):
    twinvec.errors.InputError: manifest.json: 'rows' is -3.
    """
    if not isinstance(content, dict):
        raise InputError(f"{where} is a {type(content).__name__}, not an object.", hint=hint)
    for name in checks:
        if name not in content:
            raise InputError(f"{where} lacks {name!r}.", hint=hint)
    for name, value in content.items():
        if name not in checks:
            raise InputError(f"{where} has {name!r:.60}, which is not known.", hint=hint)
        if not checks[name](value):
            raise InputError(f"{where}: {name!r} is {_shown(value)}.", hint=hint)
    return content


def is_count(value: object) -> bool:
    """Whether it is a whole number from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST


def is_positive(value: object) -> bool:
    """Whether it is a whole number from 1 on."""
    return is_count(value) and value != 0


def is_text(value: object) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def is_map(value: object) -> bool:
    """Whether it is an object."""
    return isinstance(value, dict)


def matching(pattern: str) -> Check:
    """A check for text that matches as a whole.

    >>> matching("[0-9a-f]+")("c0ffee"), matching("[0-9a-f]+")("../c0ffee")
    (True, False)
    """
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and bool(compiled.fullmatch(value))


def one_of(*known: str) -> Check:
    """A check for text that is among the known."""
    return lambda value: isinstance(value, str) and value in known


def _shown(value: object) -> str:
    """The value, however large, in a few characters."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST:
        return "a number that is too large"
    return f"{value!r:.60}"
