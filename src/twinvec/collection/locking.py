"""One writer at a time in a folder, and its work on disk before it is called done.

The lock is the system's own, on a file, so that it goes with the process that has it, however that ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from twinvec.errors import CollectionError
from twinvec.files import sync_folder, try_lock

__all__ = ["sync_changes", "writer_lock"]

LOCK = "writer.lock"
PATIENCE_S = 60.0
PAUSE_S = 0.02


@contextmanager
def writer_lock(folder: Path, *, patience_s: float | None = None) -> Iterator[None]:
    """Be the only writer of a folder; waits for another one, and gives up after ``patience_s``."""
    deadline = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise CollectionError(
            f"{folder} cannot be written: {error.strerror}.", hint="Check that it is there, and the rights to it."
        ) from error
    try:
        while not try_lock(handle):
            if time.monotonic() > deadline:
                raise CollectionError(
                    f"Another process is writing to {folder}.", hint="Wait until it is done, then do this again."
                )
            time.sleep(PAUSE_S)
        yield
    finally:
        os.close(handle)


def sync_changes(folder: Path, since: float) -> None:
    """Make files that were written after ``since`` (seconds since 1970) durable; Lance leaves that to the system."""
    places = {folder}
    for file in folder.rglob("*"):
        with suppress(OSError):  # such as a file that another process has just removed
            if file.is_file() and file.stat().st_mtime >= since:
                places.add(file.parent)
                handle = os.open(file, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
    for place in places:
        sync_folder(place)
