"""Which folders Twinvec wrote, checked before any folder is replaced or deleted.

A folder that Twinvec wrote has a marker, a hidden file that names its format. For a folder written in one step, the
marker lists all files; in a folder that grows (a bulk job, a training run), files are recognized by their names. A
folder without a marker, with another format, or with foreign files is never replaced or emptied. Only our own files are
removed, one by one, and never through a symbolic link.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from twinvec.errors import InputError

__all__ = [
    "COLLECTION",
    "INDEX",
    "MODEL",
    "FolderKind",
    "check_ours",
    "is_marked",
    "mark",
    "remove_ours",
    "remove_partial_markers",
    "write_listing",
]

MARKER = ".twinvec.json"
MARKER_PARTIAL = f"{MARKER}.partial-"
MAX_MARKER_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder: its format, and its name in messages.

    ``names`` matches the paths of its files; None means that the marker lists them. ``nested`` are inner folders with
    their own marker.
    """

    format: str
    called: str
    names: re.Pattern[str] | None = None
    nested: Mapping[str, FolderKind] = field(default_factory=dict)


MODEL = FolderKind("twinvec-model-1", "a model")
INDEX = FolderKind("twinvec-index-1", "an index")
COLLECTION = FolderKind("twinvec-collection-1", "a collection")


def check_ours(folder: Path, kind: FolderKind) -> None:
    """Raise InputError if a folder is not ours or holds foreign files, so must not be replaced; empty is fine."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        what = "a symbolic link" if folder.is_symlink() else "a file"
        raise InputError(f"{folder} is {what}, so it is not replaced.", hint="Choose another name.")
    entries = sorted(_entries(folder))
    if not entries:
        return
    marker = _read_marker(folder)
    if marker is not None and marker["format"] != kind.format:
        raise InputError(
            f"{folder} has the format {marker['format']!r:.60}, not {kind.format!r}, so it is not replaced.",
            hint="Choose another name, or remove it yourself.",
        )
    is_ours = _rule(folder, kind)
    foreign = next((name for name in entries if not is_ours(name)), None)
    if foreign is not None:
        raise InputError(
            f"{folder} holds {foreign!r}, which Twinvec did not write as part of {kind.called}, so nothing is removed.",
            hint="Choose another name, or move that file away.",
        )


def is_marked(folder: Path, kind: FolderKind) -> bool:
    """Whether the folder has a marker of this kind."""
    marker = _read_marker(folder)
    return marker is not None and marker["format"] == kind.format


def mark(folder: Path, kind: FolderKind) -> None:
    """Create a folder that grows, and write its marker first."""
    folder.mkdir(parents=True, exist_ok=True)
    if not is_marked(folder, kind):
        _write_marker(folder, {"format": kind.format})


def write_listing(folder: Path, kind: FolderKind) -> None:
    """Write the marker of a complete folder, listing all its files."""
    _write_marker(folder, {"format": kind.format, "files": sorted(_entries(folder))})


def remove_ours(folder: Path, kind: FolderKind, *, keep: Sequence[str] = ()) -> bool:
    """Remove our files from a folder, then the marker and the folder; returns whether the folder is gone.

    Foreign files stay, and so does the marker then. With ``keep``, these files and the marker stay.
    """
    is_ours = _rule(folder, kind)
    for name in sorted(_entries(folder)):
        if is_ours(name) and name not in keep:
            with suppress(FileNotFoundError):
                (folder / name).rmdir() if name.endswith("/") else (folder / name).unlink()
    for name in kind.nested:
        with suppress(OSError):  # missing
            (folder / name / MARKER).unlink()
    for path, _, _ in os.walk(folder, topdown=False):
        if Path(path) != folder:
            with suppress(OSError):  # not empty
                os.rmdir(path)
    if keep or any(_entries(folder)):
        return False
    remove_partial_markers(folder)
    (folder / MARKER).unlink(missing_ok=True)
    folder.rmdir()
    return True


def remove_partial_markers(folder: Path) -> None:
    """Remove partial markers left by a killed process."""
    for file in folder.glob(f"{MARKER_PARTIAL}*"):
        file.unlink(missing_ok=True)


def _entries(folder: Path, before: str = "") -> Iterator[str]:
    """All files in a folder, and its empty folders with a trailing slash; links are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner = list(_entries(Path(entry.path), f"{before}{entry.name}/"))
                yield from inner or [f"{before}{entry.name}/"]
            elif not (entry.name.startswith(MARKER_PARTIAL) or entry.name == MARKER):
                yield f"{before}{entry.name}"


def _rule(folder: Path, kind: FolderKind) -> Callable[[str], bool]:
    """A function that tells whether an entry of the folder is ours."""
    marker = _read_marker(folder)
    if marker is None or marker["format"] != kind.format:
        return lambda name: False
    listed = frozenset(marker["files"])
    inner = {name: _rule(folder / name, each) for name, each in kind.nested.items()}

    def is_ours(name: str) -> bool:
        first, _, rest = name.partition("/")
        if first in inner and rest:
            return inner[first](rest)
        return name in listed if kind.names is None else bool(kind.names.fullmatch(name))

    return is_ours


def _read_marker(folder: Path) -> dict[str, Any] | None:
    """The marker's format and files; None if there is no readable marker."""
    path = folder / MARKER
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_MARKER_BYTES:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    files = content.get("files", []) if isinstance(content, dict) else None
    if not isinstance(files, list) or not isinstance(content.get("format"), str):
        return None
    return {"format": content["format"], "files": [name for name in files if isinstance(name, str)]}


def _write_marker(folder: Path, content: dict[str, Any]) -> None:
    partial = folder / f"{MARKER_PARTIAL}{uuid4().hex}"
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(folder / MARKER)
    except FileNotFoundError:  # another process removed it, after marking the folder
        if not (folder / MARKER).is_file():
            raise
    finally:
        partial.unlink(missing_ok=True)
