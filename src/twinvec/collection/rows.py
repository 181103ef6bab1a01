"""What the user gives to a collection, checked: texts, ids, metadata, of one length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.collection.columns import plain_values
from twinvec.errors import InputError, shown
from twinvec.text import check_text, check_texts
from twinvec.vector_store import text_key

__all__ = ["Rows", "check_version", "checked_count", "checked_ids", "checked_rows", "own_id"]

MOST_VERSIONS = 2**63 - 1
ID_CHARACTERS = 32  # of a text's own id; 128 bits


@dataclass(frozen=True, slots=True)
class Rows:
    """Row ``i`` is ``ids[i]``, ``texts[i]``, ``keys[i]`` (the text's hash), ``metadata[i]``. Ids are different."""

    ids: list[str]
    texts: list[str]
    keys: list[str]
    metadata: list[dict[str, object]]


def own_id(text: str) -> str:
    """The id of a text that was given none: the start of its hash, so that the same text has the same id.

    >>> own_id("a cat")
    '51e467415607798220a3776f6ae1a2a0'
    """
    return text_key(text).hex()[:ID_CHARACTERS]


def checked_rows(
    texts: Iterable[str], ids: Iterable[str] | None, metadata: Iterable[Mapping[str, object]] | None
) -> Rows:
    """Rows to write; anything that is not usable is refused with its place."""
    if isinstance(texts, str):
        raise InputError(f"One text was given where a list is needed: {texts!r:.60}.", hint="Put it in a list.")
    if metadata is not None and (isinstance(metadata, (str, bytes, Mapping)) or not isinstance(metadata, Iterable)):
        raise InputError(
            f"Metadata must be a list of dicts, got {shown(metadata)}.",
            hint='Give one dict per text: [{"year": 1990}].',
        )
    checked = check_texts(texts)
    keys = [text_key(text).hex() for text in checked]
    names = [key[:ID_CHARACTERS] for key in keys] if ids is None else checked_ids(ids)
    rows = [{}] * len(checked) if metadata is None else [*metadata]
    for what, given in (("ids", names), ("metadata", rows)):
        if len(given) != len(checked):
            raise InputError(f"There are {len(checked)} texts but {len(given)} {what}.", hint="Give one per text.")
    _check_different(names, own=ids is None)
    return Rows(names, checked, keys, [plain_values(row, f"metadata[{place}]") for place, row in enumerate(rows)])


def checked_ids(ids: Iterable[str]) -> list[str]:
    """Ids as a list, each one a text that is not empty."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InputError(f"Ids must be a list, got {shown(ids)}.", hint="Put a single id in a list.")
    names = [*ids]
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"ids[{place}] is {shown(name)}, of type {type(name).__name__}.", hint="Use str(id).")
        if not check_text(name, f"ids[{place}]"):
            raise InputError(f"ids[{place}] is empty.", hint="Every id must have a character.")
    return names


def checked_count(name: str, value: object) -> int:
    """A whole number of at least 1, such as ``k``; numpy's too.

    >>> checked_count("k", 10)
    10
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} must be a whole number, got {shown(value)}.")
    if value < 1:
        raise InputError(f"{name} must be at least 1, got {shown(value)}.")
    return int(value)


def check_version(version: object) -> None:
    """Refuse a version of a collection that is not a number that one could have."""
    if version is not None and checked_count("version", version) > MOST_VERSIONS:
        raise InputError(f"There is no version {shown(version)}.", hint="Collection.versions lists them.")


def _check_different(ids: Sequence[str], *, own: bool) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(ids):
        first = seen.setdefault(name, place)
        if first != place and own:
            raise InputError(
                f"texts[{first}] and texts[{place}] are the same, and a text without an id is its own id.",
                hint="Give ids to keep both, or leave one out.",
            )
        if first != place:
            raise InputError(f"The id {name!r} is given twice, as ids[{first}] and ids[{place}].")
