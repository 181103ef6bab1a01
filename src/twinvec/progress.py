"""Terminal output: progress bars, and control characters made visible."""

from __future__ import annotations

import codecs
import io
import re
import sys
import time
from threading import Lock
from types import TracebackType
from typing import IO, Any
from unicodedata import combining, east_asian_width, normalize

__all__ = ["Progress", "columns_of", "shortened", "standard_output", "visible"]

# C0 except tab and line feed, DEL, C1, and the overrides and isolates of writing direction.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Escape control characters as ``\uXXXX``, which JSON reads back as the same text; tabs and line feeds stay.

    >>> print(visible("a \x1b]0;title\x07 b"))
    a \u001b]0;title\u0007 b
    """
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def columns_of(text: str) -> int:
    """The columns that a text takes in a terminal: two for Korean, Chinese and Japanese, none for combining marks.

    >>> columns_of("cat"), columns_of("한국"), columns_of("e\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in normalize("NFC", text))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning with an ellipsis, in at most ``most`` columns; characters stay whole.

    >>> shortened("a cat", 5), shortened("a kitten", 5), shortened("고양이가 잔다", 7)
    ('a cat', 'a ki…', '고양이…')
    """
    if columns_of(text) <= most:
        return text
    text, room = normalize("NFC", text), most - 1
    for index, each in enumerate(text):
        room -= columns_of(each)
        if room < 0:
            return f"{text[:index]}…"
    return text


class _Visible(io.BufferedIOBase):
    """A stream of UTF-8 bytes that makes control characters visible."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._target.write(visible(self._decoder.decode(bytes(data))).encode())
        return len(data)

    def flush(self) -> None:
        self._target.flush()


def standard_output() -> IO[bytes]:
    """Standard output for data: unchanged for a file or pipe, control characters made visible on a terminal."""
    return _Visible(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer  # type: ignore[return-value]


PATIENCE_S = 1.0  # shorter work shows no bar


class Progress:
    """A progress bar, drawn once the work has taken a second. Any thread may call ``advance``."""

    def __init__(self, total: int | None, label: str, *, shown: bool | None = None) -> None:
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._total, self._label = total, label
        self._done = 0
        self._started = time.monotonic()
        self._lock = Lock()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int) -> None:
        """Record that ``count`` more items are done."""
        if not self._shown:
            return
        with self._lock:
            self._done += count
            if self._bar is None and time.monotonic() - self._started > PATIENCE_S:
                self._open()
            if self._bar is not None:
                self._bar.update(self._task, completed=self._done)

    def _open(self) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(visible(self._label), total=self._total)
        self._bar.start()
