"""The folder of a bulk job: one writer at a time, one model and one way to run it.

::

    .twinvec.json          marks the folder as ours
    manifest.json          the job, and its last complete result
    texts/000000000000-<checksum>.parquet, ...   different texts with their vectors, by number
    rows-<checksum>.parquet    the number of each row's text
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twinvec.bulk.manifest import MANIFEST, JobSpec, Manifest, differences, read_manifest, write_manifest
from twinvec.bulk.rows import ROWS_NAME
from twinvec.bulk.store import SHARD_NAME
from twinvec.errors import InputError
from twinvec.files import check_path, try_lock
from twinvec.ownership import FolderKind, check_ours, is_marked, mark, remove_ours, remove_partial_markers

__all__ = ["SHARDS", "begin", "check_folder", "clear", "locked", "remove_old_rows"]

logger = logging.getLogger(__name__)

SHARDS = "texts"
LOCK = ".lock"
_FILES = rf"{re.escape(MANIFEST)}|{ROWS_NAME.pattern}"
KIND = FolderKind(
    "twinvec-bulk-1",
    "a bulk job",
    names=re.compile(
        rf"{re.escape(LOCK)}|{_FILES}|\.(?:{_FILES}|rows\.parquet)\.partial.*"
        rf"|{SHARDS}/(?:|{SHARD_NAME.pattern}|\.{SHARD_NAME.pattern}\.partial.*)"
    ),
)


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Refuse, before anything is written, a folder that holds something else than a job.

    With ``force``, which removes the job, also one that holds anything beside it.
    """
    check_path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file.", hint="Give the name of a folder.")
    if force:
        check_ours(folder, KIND)
    if not folder.exists() or is_marked(folder, KIND):
        return
    foreign = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if foreign:
        raise InputError(f"{folder} holds no bulk job, but {foreign[0]!r}.", hint="Give a new folder, or an empty one.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other writers out; the system lifts the lock when the process ends, however it does."""
    try:
        mark(folder, KIND)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise InputError(f"Cannot write in the folder {folder}: {error.strerror or error}.") from error
    with lock:
        if not try_lock(lock.fileno()):
            raise InputError(
                f"Another process is writing to {folder}.", hint="Wait for it, or stop it; nothing of it is lost."
            )
        yield


def begin(folder: Path, wanted: JobSpec) -> Manifest:
    """The manifest to go on from: a new one in an empty folder; a folder of another job is refused."""
    remove_partial_markers(folder)
    for path in folder.glob(".*.partial*"):  # what a process that was killed left
        if KIND.names and KIND.names.fullmatch(path.name):
            path.unlink()
    manifest = read_manifest(folder)
    if manifest is None:
        manifest = Manifest(wanted)
        write_manifest(folder, manifest)
        return manifest
    changed = list(differences(manifest.job, wanted))
    if changed:
        raise InputError(
            f"{folder} was begun otherwise: {'; '.join(changed)}.",
            hint="Run it as it was begun, write to another folder, or start over with --force.",
        )
    _warn_of_versions(folder, manifest.job, wanted)
    return manifest


def clear(folder: Path) -> None:
    """Remove a job's files, so that it starts over; a folder that holds anything else is refused."""
    check_ours(folder, KIND)
    remove_ours(folder, KIND, keep=[LOCK])


def remove_old_rows(folder: Path, kept: str) -> None:
    """Remove the rows of results that are no longer the manifest's."""
    for path in folder.glob("rows-*.parquet"):
        if path.name != kept and ROWS_NAME.fullmatch(path.name):
            path.unlink()


def _warn_of_versions(folder: Path, found: JobSpec, wanted: JobSpec) -> None:
    changed = [
        f"{name} {found.versions.get(name, 'none')} to {wanted.versions.get(name, 'none')}"
        for name in {**found.versions, **wanted.versions}
        if found.versions.get(name) != wanted.versions.get(name)
    ]
    if changed:
        logger.warning(
            "%s was begun with other versions (%s); new vectors may differ from the old ones in their last digits.",
            folder,
            ", ".join(changed),
        )
