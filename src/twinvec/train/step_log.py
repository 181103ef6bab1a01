"""The log of a run: a JSON object per line, for each step and each score. A resumed run goes on where it left off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from twinvec.errors import InputError
from twinvec.tables import new_file

__all__ = ["StepLog", "read_log"]


class StepLog:
    """Appends rows to a file; what was written after ``step`` by a run that was cut off is dropped first.

    Without a path, nothing is written.
    """

    def __init__(self, path: Path | None, *, step: int = 0) -> None:
        self._file: IO[bytes] | None = None
        if path is None:
            return
        rows = [row for row in read_log(path) if int(row["step"]) <= step]
        with new_file(path, replace=True) as file:
            file.writelines(_line(row) for row in rows)
        self._file = path.open("ab")

    def add(self, row: Mapping[str, object]) -> None:
        """Write one row; it must have a ``step``."""
        if self._file is None:
            return
        try:
            self._file.write(_line(row))
            self._file.flush()
        except OSError as error:
            raise InputError(f"Cannot write {self._file.name}: {error.strerror or error}.") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All whole rows of a log; a last line that was cut off is no row."""
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    try:
        rows = [json.loads(line) for line in lines[:-1]]
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not all(isinstance(row, dict) and isinstance(row.get("step"), int) for row in rows):
        raise _damaged(path)
    return rows


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is not the log of a run.", hint="Start over with --force, or restore it.")


def _line(row: Mapping[str, object]) -> bytes:
    return (json.dumps(row) + "\n").encode()
