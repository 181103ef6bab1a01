"""A file that the user has named: whole or not there, and never in place of another that was not to be replaced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from twinvec.errors import InputError
from twinvec.files import check_path, whole_file

__all__ = ["check_target", "new_file"]


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
