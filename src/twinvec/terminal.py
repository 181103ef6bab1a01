"""Texts of others on a terminal: what would command it, or turn the order of letters, is shown instead of obeyed."""

from __future__ import annotations

import codecs
import io
import re
import sys
from typing import IO

__all__ = ["standard_output", "visible"]

# C0 but for tab and line feed, DEL, C1, and the overrides and isolates of writing direction.
COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""The text with control characters as ``\uXXXX``, which JSON reads as the same text; tabs and line ends stay.

    >>> print(visible("a \x1b]0;title\x07 b"))
    a \u001b]0;title\u0007 b
    """
    return COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _Visible(io.BufferedIOBase):
    """Bytes of UTF-8 for a terminal."""

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
    """Standard output for data: the very bytes for a file or a pipe; for a person at a terminal, made visible."""
    return _Visible(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer  # type: ignore[return-value]
