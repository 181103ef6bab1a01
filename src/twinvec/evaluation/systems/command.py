"""A command as a system under test: it reads texts from standard input and writes vectors to standard output.

Each input line is a JSON string, or with ``lines="plain"`` the text itself (line breaks become spaces). Each output
line is a JSON array of numbers. The command runs without a shell, once per call, and must exit when its input ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from twinvec.choices import CommandLines, Role
from twinvec.errors import InputError
from twinvec.files import digest_files
from twinvec.types import Array, Vectors
from twinvec.vectors import checked_vectors, number_row

__all__ = ["CommandEmbedder"]

PROBE = "The quick brown fox jumps over the lazy dog."


class CommandEmbedder:
    """A program that reads texts and writes vectors."""

    similarity = "cosine"

    def __init__(self, command: str, *, lines: CommandLines = "json", timeout_s: float | None = None) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise InputError(f"The command {command!r} cannot be read: {error}.") from error
        if not self._arguments:
            raise InputError("The command is empty.", hint="Pass a program that reads texts and writes vectors.")
        self.name = command
        self.width: int | None = None
        self.settings = {"command": command, "lines": lines}
        self._lines = lines
        self._timeout_s = timeout_s

    @cached_property
    def identity(self) -> str:
        """A digest of the command, the files among its arguments, and the vector of one text.

        The vector detects a change in anything else that the program reads, such as its model.
        """
        files = [Path(word) for word in self._arguments if os.path.isfile(word)]  # isfile is False for invalid paths
        content = json.dumps([self._arguments, self._lines, digest_files(files)]).encode()
        return "command-" + hashlib.sha256(content + self.embed([PROBE]).tobytes()).hexdigest()

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Run the command once and return the vectors of the texts, ``(len(texts), width)``."""
        if not texts:
            return np.zeros((0, self.width or 0), dtype=np.float32)
        as_line = json.dumps if self._lines == "json" else _plain
        output = self._run("".join(f"{as_line(text)}\n" for text in texts))
        rows = [self._row(line, number) for number, line in enumerate(output.splitlines(), start=1) if line.strip()]
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise InputError(f"The command {self.name!r} returned vectors of different widths: {sorted(widths)}.")
        array = np.array(rows, dtype=np.float64).reshape(len(rows), max(widths, default=0))
        vectors = checked_vectors(array, texts, width=self.width, source=f"The command {self.name!r}")
        self.width = int(vectors.shape[1])
        return vectors

    def _run(self, content: str) -> str:
        try:
            done = subprocess.run(
                self._arguments,
                input=content.encode("utf-8", errors="surrogatepass"),
                capture_output=True,
                timeout=self._timeout_s,
                check=False,
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL character in it
            reason = error.strerror or error if isinstance(error, OSError) else error
            raise InputError(f"The command {self.name!r} does not start: {reason}.") from error
        except subprocess.TimeoutExpired as error:
            raise InputError(f"The command {self.name!r} did not finish within {self._timeout_s:g} s.") from error
        if done.returncode:
            last = done.stderr.decode("utf-8", errors="replace").strip().splitlines()[-1:]
            message = f" Its last message: {last[0]}" if last else ""
            raise InputError(f"The command {self.name!r} failed with exit code {done.returncode}.{message}")
        return done.stdout.decode("utf-8", errors="replace")

    def _row(self, line: str, number: int) -> Array:
        try:
            row = number_row(json.loads(line))
        except (ValueError, RecursionError):
            row = None
        if row is None or not row.size:
            shown = line if len(line) <= 60 else f"{line[:60]}..."
            raise InputError(
                f"Line {number} of the output of {self.name!r} is not a JSON array of numbers: {shown!r}.",
                hint="Write one array per text, and everything else to standard error.",
            )
        return row


def _plain(text: str) -> str:
    return " ".join(text.splitlines())
