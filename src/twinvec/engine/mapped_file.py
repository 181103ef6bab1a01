"""A file of weights mapped into memory, and the check that it is still what was mapped.

A mapped file that is replaced by another (a rename) or removed stays as it was for whoever has it open. One that is
written into or cut short is not: its new bytes show up among the old weights, and reading beyond its new end kills the
process. Nothing short of a copy prevents that, so the file is checked before every use.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from twinvec.errors import WeightsError
from twinvec.types import Array

__all__ = ["MappedFile", "check_unchanged", "mapped_file", "mapped_files"]


class MappedFile(mmap.mmap):
    """A mapped file that knows whether it has changed since. Made by :meth:`opened`."""

    path: Path
    _handle: int
    _as_opened: os.stat_result

    @classmethod
    def opened(cls, path: Path) -> MappedFile:
        """Map a file that is not empty. Its descriptor stays open as long as anything refers to the mapping."""
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            as_opened = os.fstat(handle)
            mapped = cls(handle, 0, access=mmap.ACCESS_READ)
        except BaseException:
            os.close(handle)
            raise
        mapped.path, mapped._handle, mapped._as_opened = path.resolve(), handle, as_opened
        weakref.finalize(mapped, os.close, handle).atexit = False
        return mapped

    def check(self) -> None:
        """Refuse a file that was written into or cut short since it was mapped. Takes about a microsecond."""
        if not _is_same(os.fstat(self._handle), self._as_opened):
            raise WeightsError(
                f"{self.path} was changed while it was in use.",
                hint="Load the model again. Replace a model's file by renaming another to it, not by writing into it.",
            )

    def is_at_its_path(self) -> bool:
        """Whether the file's path still leads to this file, unchanged."""
        try:
            now = os.stat(self.path)
        except OSError:
            return False
        return os.path.samestat(now, self._as_opened) and _is_same(now, self._as_opened)


def _is_same(now: os.stat_result, before: os.stat_result) -> bool:
    return (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def mapped_file(array: Array) -> MappedFile | None:
    """The mapped file that an array is a view into; None for all others."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, MappedFile) else None


def mapped_files(arrays: Iterable[Array]) -> tuple[MappedFile, ...]:
    """The mapped files that some arrays are views into, each once."""
    found = {id(file): file for file in map(mapped_file, arrays) if file is not None}
    return tuple(found.values())


def check_unchanged(files: Iterable[MappedFile]) -> None:
    """Refuse to go on if any of the files was written into or cut short since it was mapped."""
    for file in files:
        file.check()
