"""Where a collection is: a folder, or an address in an object store."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from twinvec.errors import InputError, shown
from twinvec.files import check_path

__all__ = ["TABLE", "Location", "locate"]

TABLE = "texts"


@dataclass(frozen=True, slots=True)
class Location:
    """``uri`` is what Lance connects to; ``folder`` is None for an object store; ``storage`` are its options."""

    uri: str
    folder: Path | None
    storage: dict[str, str] | None = field(default=None, repr=False)  # may hold credentials


def locate(path: str | os.PathLike[str], storage: dict[str, str] | None = None) -> Location:
    """The location that a path or an address means.

    >>> locate("s3://bucket/notes").folder is None, locate("notes").folder.name
    (True, 'notes')
    """
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise InputError(f"The path of the collection is {shown(path)}, not a text.", hint="Give a folder.")
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InputError(f"The path of the collection is {shown(text)}.", hint="Give a folder.")
    _check_storage(storage)
    if "://" in text and not text.startswith("file://"):
        return Location(text.rstrip("/"), None, storage)
    folder = Path(text.removeprefix("file://")).expanduser().absolute()
    check_path(folder)
    return Location(str(folder), folder, storage)


def _check_storage(storage: object) -> None:
    if storage is None:
        return
    if not isinstance(storage, dict) or not all(isinstance(each, str) for pair in storage.items() for each in pair):
        raise InputError(  # without the values: they may be credentials
            f"The options of the store are a {type(storage).__name__} that is not one of texts to texts.",
            hint='Give a dict such as {"region": "eu-west-1"}.',
        )
