"""Files and folders: JSON, atomic writes, digests, and locks."""

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
MAX_JSON_BYTES = 64 << 20  # the largest known tokenizer.json has 35 MB
MAX_JSON_DEPTH = 100
NAME_PART = 40  # characters of a target's name in the name of its partial file


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file does not exist."""
    content = read_any_json(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path} holds a {type(content).__name__}, not an object.")
    return content


def read_any_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """The value in a JSON file; None if the file does not exist.

    The file is not trusted: one that is too large, too deeply nested, or holds NaN or infinity raises an error.
    """
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ModelFolderError(f"{path} is larger than {MAX_JSON_BYTES >> 20} MB, too large for a config.")
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number, parse_float=_finite)
        _check_nesting(content)
    except (ValueError, RecursionError) as error:  # also: not UTF-8, a number with too many digits
        if isinstance(error, TwinvecError):
            raise
        raise ModelFolderError(f"{path} is not valid JSON: {error}.", hint="Download the model again.") from error
    except OSError as error:  # name too long, no permission
        raise ModelFolderError(f"{_short(path)} cannot be read: {error.strerror}.") from error
    return content


def _no_number(name: str) -> float:
    raise ValueError(f"it holds {name}, which is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_number(digits)


def _check_nesting(content: object) -> None:
    level = [content]
    for _ in range(MAX_JSON_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_JSON_DEPTH} levels deep")


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 200 else f"{text[:200]}..."


def write_json(path: Path, content: object) -> None:
    """Write a value as indented JSON, creating parent folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def digest_files(files: Sequence[Path]) -> str:
    """The sha256 of the concatenated content of some files."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                whole.update(chunk)
    return whole.hexdigest()


def check_path(target: Path) -> None:
    """Raise InputError for a path that the system does not allow, such as one with too long a name."""
    try:
        target.lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot use the path {_short(target)}: {reason}.", hint="Choose another name.") from error


def mapped_vectors(path: Path, *, hint: str) -> Array:
    """Memory-map the vectors of a ``.npy`` file, ``(n, width)``; any other content raises InputError."""
    try:
        vectors: Array = open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, TypeError, SyntaxError, OverflowError, RecursionError, TokenError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")[:120]
        raise InputError(f"{path} cannot be read: {reason}.", hint=hint) from error
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.flags.c_contiguous:
        raise InputError(f"{path} holds {vectors.dtype} of shape {vectors.shape}, not vectors.", hint=hint)
    if vectors.offset + vectors.nbytes != path.stat().st_size:  # type: ignore[attr-defined] # a memmap has it
        raise InputError(f"{path} has a different length than its header says.", hint=hint)
    return vectors


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """Write ``target`` atomically: yields a new file, synced and renamed over ``target`` if the block succeeds.

    Until then it lies next to ``target`` under a random name.
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
    """Create an empty file next to ``target``, to write and read; its ``name`` is its path.

    Never opens an existing file or follows a link (``O_EXCL``); permissions follow the umask.
    """
    return _partial_path(target).open("x+b")


def _partial_path(target: Path) -> Path:
    return target.with_name(f".{target.name[:NAME_PART]}.partial-{token_hex(8)}")


@contextmanager
def saved_folder(target: Path, kind: FolderKind) -> Iterator[Path]:
    """:func:`new_folder` that turns errors of the disk into InputError."""
    try:
        with new_folder(target, kind) as folder:
            yield folder
    except (OSError, SafetensorError) as error:  # safetensors reports disk errors as SafetensorError
        raise InputError(
            f"{_short(target)} cannot be written: {error}.",
            hint="No partial files remain. Check the free disk space, the permissions and the name.",
        ) from error


@contextmanager
def new_folder(target: Path, kind: FolderKind, *, replace: bool = False) -> Iterator[Path]:
    """Write a folder atomically: yields a new folder that is renamed to ``target`` if the block succeeds.

    A marker file records its kind and its files. An existing ``target`` raises InputError unless it is empty or, with
    ``replace``, of the same kind and without foreign files; it is removed once the new one is complete. Permissions
    follow the umask.
    """
    check_free(target, kind, replace=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial_path(target)
    partial.mkdir()
    try:
        yield partial
        write_listing(partial, kind)
        allowed = partial.stat().st_mode & 0o666  # follows the umask; safetensors writes files for the owner only
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(allowed)
                sync_path(file)
        check_free(target, kind, replace=replace)  # another process may have created it
        _swap(partial, target, partial.with_name(f"{partial.name}-old") if replace else None, kind)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_free(target: Path, kind: FolderKind, *, replace: bool) -> None:
    """Raise InputError unless ``target`` is free or, with ``replace``, a folder of this kind that Twinvec wrote."""
    if not is_taken(target):
        return
    if target.is_symlink():
        raise InputError(f"{target} is a symbolic link, so it is not replaced.", hint="Choose another name.")
    if not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or remove it first.")
    check_ours(target, kind)


def _swap(new: Path, target: Path, old: Path | None, kind: FolderKind) -> None:
    """Rename ``new`` to ``target``; an existing target is first renamed to ``old``, and removed at the end.

    Without ``old``, an existing target must be empty.
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
    logger.warning("%s still holds files of the old folder, and is kept.", folder)


def is_taken(target: Path) -> bool:
    """Whether ``target`` is a file, a link, or a folder that is not empty."""
    check_path(target)
    return target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir())))


def sync_folder(folder: Path) -> None:
    """Sync new file names in a folder to disk, where the system can."""
    with suppress(OSError):
        sync_path(folder)


def sync_path(path: Path) -> None:
    """Sync a file's content, or a folder's file names, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file for this process; False if another process holds the lock. True where locks do not exist."""
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
    """Raise InputError, before any work, if a target file cannot or must not be written."""
    check_path(target)
    if target.is_dir():
        raise InputError(f"{target} is a folder.", hint="Name a file inside it.")
    if target.exists() and not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or replace it with --force.")
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} for {target.name}.", hint="Create it first.")


@contextmanager
def new_file(target: Path, *, replace: bool = False) -> Iterator[IO[bytes]]:
    """Write a new file atomically: it gets the name ``target`` if the block succeeds."""
    check_target(target, replace=replace)
    try:
        with whole_file(target) as file:
            yield file
            check_target(target, replace=replace)  # another process may have created it
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror or error}.") from error
