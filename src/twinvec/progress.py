"""A progress bar on standard error, for long work, when a person is watching."""

from __future__ import annotations

import sys
import time
from threading import Lock
from types import TracebackType
from typing import Any

from twinvec.terminal import visible

__all__ = ["Progress"]

PATIENCE_S = 1.0  # work that is done sooner shows no bar


class Progress:
    """Counts what is done; draws a bar once the work has taken a second. Any thread may call ``advance``."""

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
        """Say that ``count`` more are done."""
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
