"""What files were when they were read first, so that a later reader knows whether they still are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from twinvec.errors import ModelFolderError

__all__ = ["FileStates", "file_states"]


@dataclass(frozen=True, slots=True)
class FileStates:
    """Files by path, and what the system said of each. Files that are added later do not matter."""

    states: Mapping[Path, tuple[int, ...] | None]

    def check(self) -> None:
        """Refuse to go on if any of the files has been replaced, changed or removed since."""
        for file, state in self.states.items():
            if _state(file) != state:
                raise ModelFolderError(
                    f"{file} was changed after the model was opened.",
                    hint="Load the model again: its files must all be of one model.",
                )


def file_states(files: Iterable[Path]) -> FileStates:
    """What these files are now."""
    return FileStates({file: _state(file) for file in files})


def _state(file: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
