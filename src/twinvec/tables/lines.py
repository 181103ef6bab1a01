"""The lines of a text file or of standard input: unzipped, decoded, numbered."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from twinvec.errors import InputError
from twinvec.tables.formats import STDIN

__all__ = ["check_file", "decoded_lines", "display_name"]


def display_name(source: str) -> str:
    """How messages call the source."""
    return "Standard input" if source == STDIN else source


@contextmanager
def open_bytes(source: str) -> Iterator[Iterable[bytes]]:
    """The bytes of a file, unzipped if they are gzipped; standard input stays open at the end."""
    with nullcontext(sys.stdin.buffer) if source == STDIN else check_file(source).open("rb") as raw:
        peek = getattr(raw, "peek", None)  # a stand-in for standard input may lack it
        is_gzipped = peek is not None and peek(2)[:2] == b"\x1f\x8b"
        yield gzip.GzipFile(fileobj=raw) if is_gzipped else raw


def check_file(source: str) -> Path:
    """The path, if it is a file that can be opened."""
    path = Path(source)
    if os.path.isdir(path):
        raise InputError(f"{source} is a folder.", hint="Give one file, or join several with: cat A B | ... -")
    if not os.path.exists(path):  # unlike Path.exists, False for a name that is too long for a file
        raise InputError(f"There is no file {source:.200}.", hint="Check the name; '-' reads standard input.")
    return path


def decoded_lines(source: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file, numbered from 1, without their line ends."""
    try:
        with open_bytes(source) as stream:
            for number, raw in enumerate(stream, start=1):
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if "\0" in text:
                    raise _not_text(source, number, text.index("\0") + 1)
                yield number, text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{display_name(source)}, line {number}: byte {error.start + 1} (0x{error.object[error.start]:02x}) "
            "is not UTF-8.",
            hint="Save the file as UTF-8, for instance with: iconv -f LATIN1 -t UTF-8",
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{display_name(source)} is not whole gzip data: {error}.", hint="Fetch or pack it again."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {display_name(source)}: {error.strerror or error}.") from error


def _not_text(source: str, number: int, place: int) -> InputError:
    return InputError(
        f"{display_name(source)}, line {number}: character {place} is NUL, which plain text does not have.",
        hint="A file in UTF-16 looks like this; convert it with: iconv -f UTF-16 -t UTF-8",
    )
