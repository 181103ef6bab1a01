"""Where a collection is: a folder, or an address in an object store."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from twinvec.errors import InputError
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
    text = os.fspath(path)
    if not text:
        raise InputError("The path of the collection is empty.", hint="Give a folder.")
    if "://" in text and not text.startswith("file://"):
        return Location(text.rstrip("/"), None, storage)
    folder = Path(text.removeprefix("file://")).expanduser().absolute()
    check_path(folder)
    return Location(str(folder), folder, storage)
