"""Tables: file formats, decoded lines, columns, and rows that are read one at a time."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple, TypeAlias

from twinvec.errors import InputError, RowError, UnknownNameError, shown

__all__ = [
    "STDIN",
    "Record",
    "Row",
    "Table",
    "check_columns",
    "check_file",
    "choose_column",
    "decoded_lines",
    "display_name",
    "read_format",
    "rows_format",
    "text_of",
    "write_format",
]

STDIN = "-"

# format -> its file extensions
READ_FORMATS: dict[str, tuple[str, ...]] = {
    "lines": (".txt", ".text", ".lines"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}
WRITE_FORMATS: dict[str, tuple[str, ...]] = {
    "npy": (".npy",),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}


def read_format(path: str, format: str | None = None) -> str:
    """The format for reading ``path``. Standard input is read as lines unless ``format`` is set.

    >>> read_format("news.csv.gz"), read_format("-"), read_format("notes.md", "lines")
    ('csv', 'lines', 'lines')
    """
    return _rows_format(path, format, hint="Set the format (--format, or format= in Python)")


def rows_format(path: str, format: str | None = None) -> str:
    """The format for writing rows to ``path``; the same formats as for reading.

    >>> rows_format("news.csv.gz"), rows_format("-")
    ('csv', 'lines')
    """
    return _rows_format(path, format, hint="Use one of these extensions for the output")


def _rows_format(path: str, format: str | None, *, hint: str) -> str:
    if format is None and path == STDIN:
        return "lines"
    name = path[: -len(".gz")] if path.lower().endswith(".gz") else path
    return _choose(name, format, formats=READ_FORMATS, hint=hint)


def write_format(path: str) -> str:
    """The format for writing vectors to ``path``.

    >>> write_format("vectors.npy")
    'npy'
    """
    return _choose(path, None, formats=WRITE_FORMATS, hint="Use one of these extensions for the output")


def _choose(name: str, format: str | None, *, formats: Mapping[str, tuple[str, ...]], hint: str) -> str:
    if format is not None:
        if format not in formats:
            raise UnknownNameError("format", format, formats)
        return format
    ending = PurePath(name).suffix.lower()
    for known, endings in formats.items():
        if ending in endings:
            return known
    problem = f"Unknown extension {ending!r} of {name!r}." if ending else f"The name {name!r} has no extension."
    choices = formats if "format=" in hint else (each for endings in formats.values() for each in endings)
    raise InputError(problem, hint=f"{hint}: {', '.join(choices)}.")


def display_name(source: str) -> str:
    """The name of a source in messages."""
    return "Standard input" if source == STDIN else source


@contextmanager
def open_bytes(source: str) -> Iterator[Iterable[bytes]]:
    """Open a file, decompressed if it is gzipped; standard input stays open at the end."""
    with nullcontext(sys.stdin.buffer) if source == STDIN else check_file(source).open("rb") as raw:
        peek = getattr(raw, "peek", None)  # a substitute for standard input may lack it
        is_gzipped = peek is not None and peek(2)[:2] == b"\x1f\x8b"
        yield gzip.GzipFile(fileobj=raw) if is_gzipped else raw


def check_file(source: str) -> Path:
    """Return the path, or raise an error if it is not a file."""
    path = Path(source)
    if os.path.isdir(path):
        raise InputError(f"{source} is a folder.", hint="Pass one file, or join several with: cat A B | ... -")
    if not os.path.exists(path):  # unlike Path.exists, False if the name is too long
        raise InputError(f"File not found: {source:.200}.", hint="Check the name; '-' reads standard input.")
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
            hint="Save the file as UTF-8, for example with: iconv -f LATIN1 -t UTF-8",
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{display_name(source)} is not complete gzip data: {error}.", hint="Download or compress it again."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {display_name(source)}: {error.strerror or error}.") from error


def _not_text(source: str, number: int, index: int) -> InputError:
    return InputError(
        f"{display_name(source)}, line {number}: character {index} is NUL, so this is not plain text.",
        hint="It may be UTF-16; convert it with: iconv -f UTF-16 -t UTF-8",
    )


DEFAULT_COLUMNS = ("text", "sentence", "content")


def choose_column(names: Sequence[str], column: str | None, *, source: str) -> str:
    """The column of the texts: ``column``, or the only one, or one with a default name.

    >>> choose_column(["id", "sentence"], None, source="a.csv")
    'sentence'
    """
    if column is None:
        column = names[0] if len(names) == 1 else next((name for name in DEFAULT_COLUMNS if name in names), None)
    if column is None:
        raise InputError(
            f"{source} has {len(names)} columns, none of them named {', '.join(DEFAULT_COLUMNS[:-1])} or "
            f"{DEFAULT_COLUMNS[-1]}: {', '.join(names)}.",
            hint="Name the column of the texts (--column, or column= in Python).",
        )
    if column not in names:
        raise UnknownNameError("column", column, names)
    check_columns(names, [column], source=source)
    return column


def check_columns(names: Sequence[str], wanted: Sequence[str], *, source: str) -> None:
    """Raise an error if the file does not have a column, or has it twice.

    >>> check_columns(["id", "text"], ["text"], source="a.csv")
    """
    if isinstance(wanted, str) or not wanted:
        raise InputError(f"columns must be a list of at least one name, got {wanted!r}.", hint='Example: ["text"].')
    for column in wanted:
        if column not in names:
            raise UnknownNameError(f"column in {source}:", column, names)
        if list(names).count(column) > 1:
            raise InputError(f"{source} has several columns named {column!r}.", hint="Rename them.")


def text_of(value: object, column: str, *, where: str) -> str:
    """Return a value if it is a text, or raise an error.

    >>> text_of("Hello.", "text", where="a.jsonl, line 1")
    'Hello.'
    """
    if isinstance(value, str):
        return value
    found = "null" if value is None else f"a {type(value).__name__} ({shown(value, 40)})"
    raise RowError(
        f"{where}: {column!r} is {found}, not a text.", fault="not a text", hint="Write a string, or remove the row."
    )


# A row as read from a format: its number, and the values of the requested columns, in order.
Record: TypeAlias = tuple[int, Sequence[object]] | RowError


class Row(NamedTuple):
    """One row: its location for messages, its values by column, and its line or row number."""

    where: str
    values: dict[str, object]
    number: int


@dataclass(frozen=True, slots=True)
class Table:
    """A file, its columns, and its rows, which can be read once.

    An invalid row is yielded as its error, and the rows after it follow, so the caller may raise or count it.
    ``records`` is the reader of the format, for existing columns; ``unit`` says what numbers count, line or row.
    """

    name: str
    columns: tuple[str, ...]
    unit: str
    records: Callable[[Sequence[str]], Iterator[Record]]

    def rows(self, columns: Sequence[str]) -> Iterator[Row | RowError]:
        """Every row with its values in ``columns``."""
        for record in self.records(columns):
            if isinstance(record, RowError):
                yield record
            else:
                number, values = record
                yield Row(self.where(number), dict(zip(columns, values, strict=True)), number)

    def where(self, number: int) -> str:
        """The location of a row for messages."""
        return f"{self.name}, {self.unit} {number}"
