"""JSON from outside: parsed, and its fields taken by name and kind; a wrong one is an error that names it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twinvec.errors import InputError

__all__ = ["Fields", "parse_json"]


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
            raise InputError(f"{self.source} is {_shown(self.content)}, not an object.")

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
            raise InputError(f"{self.source}: {name!r} is {_shown(value)}, not {kind}.")
        return value


def _shown(value: object) -> str:
    """A value in few words; a whole one may be long, or too deep for repr."""
    if isinstance(value, (list, dict)):
        return "an object" if isinstance(value, dict) else "a list"
    return "null" if value is None else f"{value!r:.60}"
