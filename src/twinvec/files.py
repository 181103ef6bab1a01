"""Reading JSON with errors that help, and writing folders that are whole or not there at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from typing import IO, Any

from twinvec.errors import InputError, ModelFolderError

__all__ = [
    "digest_files",
    "is_taken",
    "new_folder",
    "open_partial",
    "read_json",
    "sync_folder",
    "try_lock",
    "whole_file",
    "write_json",
]

NAME_PART = 40  # characters of a target's name in the name of its partial file, which must not grow too long


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one if there is no such file."""
    content = read_any_json(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path} holds a {type(content).__name__}, not an object.")
    return content


def read_any_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """The value in a JSON file; None if there is no such file."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelFolderError(f"{path} is not valid JSON: {error}.", hint="Fetch the model again.") from error


def write_json(path: Path, content: object) -> None:
    """Write a value as indented JSON, making the folder it goes to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def digest_files(files: Sequence[Path]) -> str:
    """The sha256 of some files' content, one after the other."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                whole.update(chunk)
    return whole.hexdigest()


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """A file to fill that takes the name ``target`` when the block ends without an error, from whatever has it then.

    Until then it stands beside it under a name that nobody can know before; it is on the disk before it is renamed.
    """
    file = open_partial(target)
    partial = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
        sync_folder(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def open_partial(target: Path) -> IO[bytes]:
    """A new, empty file beside ``target``, to write and read; its ``name`` is its path.

    Nothing that is there is opened, no link is followed (``O_EXCL``), and its rights are what the umask leaves.
    """
    return target.with_name(f".{target.name[:NAME_PART]}.partial-{token_hex(8)}").open("x+b")


@contextmanager
def new_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that takes the name ``target`` only when the block ends without an error.

    Refuses a target that holds anything already, unless it is to be replaced: then the old one goes when the new one
    is whole.
    """
    _check_free(target, replace=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    partial.chmod(0o755)  # mkdtemp's own is for one user alone
    old = partial.with_name(f"{partial.name}-old")
    try:
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(0o644)  # safetensors' own is for one user alone, too
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
        _check_free(target, replace=replace)  # another process may have been quicker
        _swap(partial, target, old if replace else None)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_free(target: Path, *, replace: bool) -> None:
    if is_taken(target) and not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or remove it first.")


def _swap(new: Path, target: Path, old: Path | None) -> None:
    """Give ``new`` the name ``target``; what has it now goes by ``old`` until that is done, and is then removed.

    Without ``old`` it is an empty folder at most, and stays if it has been filled since.
    """
    if target.exists():
        target.rmdir() if old is None else target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if old is not None and old.exists():
            old.rename(target)
        raise
    sync_folder(target.parent)
    if old is None:
        return
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def is_taken(target: Path) -> bool:
    """Whether something of the user's is there: a file, or a folder that is not empty."""
    return target.exists() and (not target.is_dir() or any(target.iterdir()))


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable; systems that cannot sync a folder keep their own promise."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file for this process; False if another one has it. Systems without such locks have none."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
