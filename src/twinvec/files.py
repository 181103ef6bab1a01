"""Files and folders: JSON with errors that help, atomic writes, digests, locks, and sizes in bytes."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tokenize import TokenError
from typing import IO, Any
from uuid import uuid4

from numpy.lib.format import open_memmap
from safetensors import SafetensorError

from twinvec.errors import InputError, ModelFolderError, TwinvecError
from twinvec.ownership import FolderKind, check_ours, remove_ours, write_listing
from twinvec.types import Array

__all__ = [
    "check_free",
    "check_path",
    "check_target",
    "digest_files",
    "is_taken",
    "mapped_vectors",
    "new_file",
    "new_folder",
    "open_partial",
    "read_json",
    "saved_folder",
    "sync_folder",
    "sync_path",
    "try_lock",
    "whole_file",
    "write_json",
]

logger = logging.getLogger(__name__)
MOST_JSON_BYTES = 64 << 20  # the largest tokenizer.json known has 35 MB
DEEPEST_JSON = 100
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
    """The value in a JSON file; None if there is no such file.

    It comes from outside: a file that is too large, nested too deeply, or holds NaN or an infinite number is refused.
    """
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > MOST_JSON_BYTES:
            raise ModelFolderError(f"{path} is larger than {MOST_JSON_BYTES >> 20} MB, which no config is.")
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number, parse_float=_finite)
        _check_nesting(content)
    except (ValueError, RecursionError) as error:  # also: not UTF-8, a number of too many digits
        if isinstance(error, TwinvecError):
            raise
        raise ModelFolderError(f"{path} is not valid JSON: {error}.", hint="Fetch the model again.") from error
    except OSError as error:  # a name that is too long, a file that may not be read
        raise ModelFolderError(f"{_short(path)} cannot be read: {error.strerror}.") from error
    return content


def _no_number(name: str) -> float:
    raise ValueError(f"it holds {name}, which is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_number(digits)


def _check_nesting(content: object) -> None:
    """Refuse values inside values inside values, on which whoever reads them would break."""
    level = [content]
    for _ in range(DEEPEST_JSON):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST_JSON} levels deep")


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:200]}..."


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


def check_path(target: Path) -> None:
    """Refuse a path that the system cannot have, such as one with a name that is too long."""
    try:
        target.lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # the second: a NUL in it
        shown = str(target) if len(str(target)) < 100 else f"{str(target)[:100]}..."
        raise InputError(
            f"Cannot use the path {shown}: {getattr(error, 'strerror', None) or error}.", hint="Choose another name."
        ) from error


def mapped_vectors(path: Path, *, hint: str) -> Array:
    """The vectors in a file of ``numpy.save``, ``(n, width)``, mapped; anything else in it is an error."""
    try:
        vectors: Array = open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, TypeError, SyntaxError, OverflowError, RecursionError, TokenError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")[:120]
        raise InputError(f"{path} cannot be read: {reason}.", hint=hint) from error
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.flags.c_contiguous:
        raise InputError(f"{path} holds {vectors.dtype} of shape {vectors.shape}, not vectors.", hint=hint)
    if vectors.offset + vectors.nbytes != path.stat().st_size:  # type: ignore[attr-defined] # a memmap has it
        raise InputError(f"{path} has another length than its header says.", hint=hint)
    return vectors


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
def saved_folder(target: Path, kind: FolderKind) -> Iterator[Path]:
    """:func:`new_folder` for what a user saves: a disk that is full or refuses is an error of ours."""
    try:
        with new_folder(target, kind) as folder:
            yield folder
    except (OSError, SafetensorError) as error:  # the second is how its package says that a disk refuses
        raise InputError(
            f"{_short(target)} cannot be written: {error}.",
            hint="Nothing was left there. Check the room on the disk, the rights and the name.",
        ) from error


@contextmanager
def new_folder(target: Path, kind: FolderKind, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that takes the name ``target`` only when the block ends without an error.

    It gets a marker that says of which kind it is, and what is in it. Refuses a target that holds anything already,
    unless it is to be replaced: then one of the same kind that holds nothing of the user's goes when the new one is
    whole. What may be read is for the umask to say.
    """
    check_free(target, kind, replace=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name[:40]}.partial-{uuid4().hex[:12]}")
    partial.mkdir()
    try:
        yield partial
        write_listing(partial, kind)
        allowed = partial.stat().st_mode & 0o666  # by the umask; safetensors' own is for one user alone
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(allowed)
                sync_path(file)
        check_free(target, kind, replace=replace)  # another process may have been quicker
        _swap(partial, target, partial.with_name(f"{partial.name}-old") if replace else None, kind)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_free(target: Path, kind: FolderKind, *, replace: bool) -> None:
    """Refuse a target that holds anything, or, if it is to be replaced, anything but a folder of this kind of ours."""
    if is_taken(target) and target.is_symlink():
        raise InputError(f"{target} is a symbolic link, so it is not replaced.", hint="Choose another name.")
    if not is_taken(target):
        return
    if not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or remove it first.")
    check_ours(target, kind)


def _swap(new: Path, target: Path, old: Path | None, kind: FolderKind) -> None:
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
    if old is not None and old.exists():
        _remove_old(old, kind)


def _remove_old(folder: Path, kind: FolderKind) -> None:
    with suppress(OSError):
        if remove_ours(folder, kind):
            return
    logger.warning("%s holds what is left of the old folder, and is kept.", folder)


def is_taken(target: Path) -> bool:
    """Whether something is there: a file, a link, or a folder that is not empty."""
    check_path(target)
    return target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir())))


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable; systems that cannot sync a folder keep their own promise."""
    with suppress(OSError):
        sync_path(folder)


def sync_path(path: Path) -> None:
    """Make a file's content, or a folder's names, durable."""
    handle = os.open(path, os.O_RDONLY)
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


def check_target(target: Path, *, replace: bool = False) -> None:
    """Refuse, before any work is done, a target that cannot or should not be written."""
    check_path(target)
    if target.is_dir():
        raise InputError(f"{target} is a folder.", hint="Give the name of a file in it.")
    if target.exists() and not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or replace it with --force.")
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} for {target.name}.", hint="Make it first.")


@contextmanager
def new_file(target: Path, *, replace: bool = False) -> Iterator[IO[bytes]]:
    """A file to fill that takes the name ``target`` only when the block ends without an error."""
    check_target(target, replace=replace)
    try:
        with whole_file(target) as file:
            yield file
            check_target(target, replace=replace)  # another process may have been quicker
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror or error}.") from error
