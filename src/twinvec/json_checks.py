"""Checks of untrusted JSON: keys, types and ranges; errors name the file and the value."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from twinvec.errors import InputError, ModelFolderError, TwinvecError, shown

__all__ = ["LARGEST_EXACT", "JsonObject", "is_plain", "parse_json", "shown_json"]


class _Required:
    pass


REQUIRED: Final = _Required()  # no default: the key must exist
LARGEST: Final = 2**31 - 1
LARGEST_EXACT: Final = 2**53 - 1  # JSON parsers disagree on larger integers
FINITE: Final = sys.float_info.max
HINT: Final = "Download the model again, or correct the file."


@dataclass(frozen=True, slots=True)
class JsonObject:
    """A JSON object whose values are checked. Errors have the class ``error`` and name ``source``.

    Each method reads one key. Without a default the key must exist; a default is returned unchecked.

    >>> JsonObject({"heads": 12}, "config.json").integer("heads", most=100)
    12
    >>> JsonObject({"heads": -1}, "config.json", hint="").integer("heads", most=100)
    Traceback (most recent call last):
    twinvec.errors.ModelFolderError: config.json: 'heads' is -1, not a whole number from 1 to 100.
    """

    content: Mapping[str, Any]
    source: object
    error: type[TwinvecError] = ModelFolderError
    hint: str = HINT

    def __post_init__(self) -> None:
        if not isinstance(self.content, Mapping):
            raise self.error(f"{self.source} is {shown_json(self.content)}, not an object.", hint=self.hint)

    def integer(self, key: str, default: Any = REQUIRED, *, least: int = 1, most: int = LARGEST) -> Any:  # noqa: ANN401
        """A whole number in a range."""
        value = self.value(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least} to {most}")
        return value

    def number(
        self, key: str, default: float | _Required = REQUIRED, *, least: float = -FINITE, most: float = FINITE
    ) -> float:
        """A finite number in a range."""
        value = self.value(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise self.wrong(key, "a number" if most == FINITE else f"a number from {least:g} to {most:g}")
        return float(value)

    def flag(self, key: str, default: bool | _Required = REQUIRED) -> bool:
        """True or false."""
        value = self.value(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, default: Any = REQUIRED, *, pattern: str = "(?s:.*)") -> Any:  # noqa: ANN401
        """A text that fully matches ``pattern``, without NUL or lone surrogates."""
        value = self.value(key, default)
        if value is default:
            return value
        if not isinstance(value, str) or not is_plain(value):
            raise self.wrong(key, "a text")
        if not re.fullmatch(pattern, value):
            raise self.wrong(key, f"a text of the form {pattern}")
        return value

    def word(self, key: str, default: Any = REQUIRED, *, choices: Collection[str]) -> Any:  # noqa: ANN401
        """One of ``choices``."""
        value = self.text(key, default)
        if value is not default and value not in choices:
            raise self.wrong(key, f"one of {', '.join(choices)}")
        return value

    def inner(self, key: str, default: Mapping[str, Any] | _Required = REQUIRED) -> JsonObject:
        """A nested object. With a default, null means absent."""
        value = self.value(key, default)
        if value is None and not isinstance(default, _Required):
            value = default
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return self._inside(value, key)

    def items(self, key: str, default: Any = REQUIRED) -> Any:  # noqa: ANN401 - a list, or the default
        """A list of anything."""
        value = self.value(key, default)
        if value is not default and not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value

    def objects(self, key: str) -> list[JsonObject]:
        """A list of objects."""
        return [self._inside(value, f"{key}[{index}]") for index, value in enumerate(self.items(key))]

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        rows = self._inside({f"{key}[{index}]": value for index, value in enumerate(self.items(key))})
        return [rows.text(name) for name in rows.content]

    def only(self, keys: Collection[str]) -> JsonObject:
        """This object; raises an error if it has any other key."""
        for key in self.content:
            if key not in keys:
                raise self.error(f"{self.source} has the unknown key {shown(key)}.", hint=self.hint)
        return self

    def value(self, key: str, default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """The unchecked value of a key."""
        if key not in self.content and isinstance(default, _Required):
            raise self.error(f"{self.source} lacks {key!r}.", hint=self.hint)
        return self.content.get(key, default)

    def wrong(self, key: str, wanted: str) -> TwinvecError:
        """The error for a value of the wrong kind."""
        value = shown_json(self.content.get(key))
        return self.error(f"{self.source}: {shown(key)} is {value}, not {wanted}.", hint=self.hint)

    def _inside(self, content: Mapping[str, Any], key: str = "") -> JsonObject:
        return JsonObject(content, f"{self.source}, {key}" if key else self.source, self.error, self.hint)


def is_plain(text: str) -> bool:
    """Whether a text is valid UTF-8 and allowed in a file name."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def shown_json(value: object, length: int = 60) -> str:
    """The ``repr`` of a JSON value for messages.

    >>> shown_json(None), shown_json(3)
    ('null', '3')
    """
    return "null" if value is None else shown(value, length)


def parse_json(content: str | bytes, *, source: str, hint: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON; error messages begin with ``source``.

    >>> parse_json(b"[1, 2]", source="The answer")
    [1, 2]
    """
    try:
        return json.loads(content)
    except RecursionError as error:
        raise InputError(f"{source} is JSON that is nested too deeply.", hint=hint) from error
    except ValueError as error:  # not JSON, not UTF-8, or a number with too many digits
        start = content[:60]
        text = start if isinstance(start, str) else start.decode("utf-8", errors="replace")
        raise InputError(f"{source} is not JSON: {text!r}.", hint=hint) from error
