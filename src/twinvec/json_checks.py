"""JSON from outside, checked where it is read: keys, types and ranges; errors name the file and the value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from twinvec.errors import InputError, ModelFolderError, TwinvecError

__all__ = [
    "REQUIRED",
    "Check",
    "Fields",
    "JsonObject",
    "check_object",
    "is_count",
    "is_map",
    "is_plain",
    "is_positive",
    "is_text",
    "matching",
    "one_of",
    "parse_json",
    "shown",
]


class _Required:
    pass


REQUIRED: Final = _Required()  # in place of a default: the key must be there
LARGEST: Final = 2**31 - 1
AGAIN: Final = "Fetch the model again, or correct the file."


@dataclass(frozen=True)
class JsonObject:
    """The object of a JSON file. ``source`` names the file in errors of the class ``error``.

    >>> JsonObject({"heads": 12}, "config.json").integer("heads", most=100)
    12
    """

    content: Mapping[str, Any]
    source: object
    error: type[TwinvecError] = ModelFolderError
    hint: str = AGAIN

    def integer(self, key: str, default: Any = REQUIRED, *, least: int = 1, most: int = LARGEST) -> Any:  # noqa: ANN401
        """A whole number in a range; a default is given back as it is."""
        value = self._value(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def number(self, key: str, default: float | _Required = REQUIRED, *, least: float, most: float) -> float:
        """A number in a range."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise self.wrong(key, f"a number from {least:g} to {most:g}")
        return float(value)

    def flag(self, key: str, default: bool | _Required = REQUIRED) -> bool:
        """True or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, default: Any = REQUIRED) -> Any:  # noqa: ANN401 - a str, or the default
        """A text that has no NUL and no lone surrogate, which no system takes."""
        value = self._value(key, default)
        if value is default:
            return value
        if not isinstance(value, str) or not is_plain(value):
            raise self.wrong(key, "a text")
        return value

    def word(self, key: str, default: Any = REQUIRED, *, choices: Collection[str]) -> Any:  # noqa: ANN401
        """One of some words."""
        value = self.text(key, default)
        if value is not default and value not in choices:
            raise self.wrong(key, f"one of {', '.join(choices)}")
        return value

    def inner(self, key: str) -> JsonObject:
        """An object inside this one; an empty one where it is absent or null."""
        value = self.content.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return JsonObject(value or {}, f"{self.source}, {key}", self.error, self.hint)

    def items(self, key: str) -> list[Any] | None:
        """A list of anything; None where it is absent or null."""
        value = self.content.get(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value

    def wrong(self, key: str, wanted: str) -> TwinvecError:
        """The error that a value is not what it must be."""
        return self.error(
            f"{self.source} holds a value of the wrong kind: {key} is {shown(self.content.get(key))}, not {wanted}.",
            hint=self.hint,
        )

    def _value(self, key: str, default: Any) -> Any:  # noqa: ANN401
        if key not in self.content and isinstance(default, _Required):
            raise self.error(f"{self.source} lacks {key!r}.", hint=self.hint)
        return self.content.get(key, default)


def is_plain(text: str) -> bool:
    """Whether a text can be written as UTF-8 and be part of a file's name."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def shown(value: object, room: int = 60) -> str:
    """A value as an error shows it: whole if short.

    >>> shown("x"), shown([1] * 99, 9)
    ("'x'", '[1, 1,...')
    """
    text = ascii(value) if isinstance(value, str) and not is_plain(value) else _repr(value)
    return text if len(text) <= room else text[: room - 3] + "..."


def _repr(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # an int of more digits than Python prints
        return f"a very large {type(value).__name__}"


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


def _is_whole(value: object) -> bool:
    return type(value) is int


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


# kind, as messages call it -> whether a value is of it
KINDS: dict[str, Callable[[object], bool]] = {
    "a text": lambda value: isinstance(value, str),
    "a whole number": _is_whole,
    "a number": _is_number,
    "a number or null": lambda value: value is None or _is_number(value),
    "a list": lambda value: isinstance(value, list),
    "an object": lambda value: isinstance(value, dict),
    "an object or null": lambda value: value is None or isinstance(value, dict),
}


def parse_json(content: str | bytes, *, source: str) -> Any:  # noqa: ANN401 - whatever was sent
    """The value in a JSON text; errors begin with ``source``.

    >>> parse_json(b"[1, 2]", source="The answer")
    [1, 2]
    """
    try:
        return json.loads(content)
    except RecursionError as error:
        raise InputError(f"{source} is JSON with too many levels.") from error
    except ValueError as error:  # no JSON, not UTF-8, or a number of too many digits
        start = content[:60]
        shown = start if isinstance(start, str) else start.decode("utf-8", errors="replace")
        raise InputError(f"{source} is not JSON: {shown!r}.") from error


@dataclass(frozen=True, slots=True)
class Fields:
    """An object from outside; ``source`` is what messages call it.

    >>> Fields({"n": 3}, "a.json").get("n", "a whole number")
    3
    """

    content: Any
    source: str

    def __post_init__(self) -> None:
        if not isinstance(self.content, dict):
            raise InputError(f"{self.source} is {_in_few_words(self.content)}, not an object.")

    def get(self, name: str, kind: str) -> Any:  # noqa: ANN401 - of the kind that was asked for
        """The value of a field that must be there, and be of a kind of ``KINDS``."""
        if name not in self.content:
            raise InputError(f"{self.source} lacks the field {name!r}.")
        return self.check(self.content[name], kind, name)

    def each(self, name: str, kind: str) -> list[Any]:
        """The values of a field that is a list of one kind."""
        return [self.check(value, kind, f"{name}[{i}]") for i, value in enumerate(self.get(name, "a list"))]

    def part(self, name: str) -> Fields:
        """The object in a field."""
        return Fields(self.get(name, "an object"), f"{self.source}: {name}")

    def parts(self, name: str) -> list[Fields]:
        """The objects in a field that is a list of them."""
        values = self.get(name, "a list")
        return [Fields(value, f"{self.source}: {name}[{i}]") for i, value in enumerate(values)]

    def check(self, value: object, kind: str, name: str) -> Any:  # noqa: ANN401 - of the kind that was asked for
        """The value, if it is of the kind."""
        if not KINDS[kind](value):
            raise InputError(f"{self.source}: {name!r} is {_in_few_words(value)}, not {kind}.")
        return value


def _in_few_words(value: object) -> str:
    """A value in few words; a whole one may be long, or too deep for repr."""
    if isinstance(value, (list, dict)):
        return "an object" if isinstance(value, dict) else "a list"
    return "null" if value is None else f"{value!r:.60}"
