"""Reading JSON with errors that help, and writing folders that are whole or not there at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from twinvec.errors import InputError, ModelFolderError

__all__ = ["new_folder", "read_json", "write_json"]


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


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill that takes the name ``target`` only when the block ends without an error.

    Refuses a target that holds anything already: nothing of the user's is overwritten.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} exists already.", hint="Choose another name, or remove it first.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    partial.chmod(0o755)  # mkdtemp's own is for one user alone
    try:
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
