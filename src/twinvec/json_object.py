"""Typed values out of a JSON object that somebody else wrote: each is checked where it is read, once.

A file's values are data from outside. Whoever reads one says what it must be, and the error says what it is, where.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from twinvec.errors import ModelFolderError, TwinvecError

__all__ = ["REQUIRED", "JsonObject", "is_plain", "shown"]


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
