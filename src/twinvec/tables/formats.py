"""Which format a file has: by its ending, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from twinvec.errors import InputError, UnknownNameError

__all__ = ["READ_FORMATS", "STDIN", "WRITE_FORMATS", "read_format", "rows_format", "write_format"]

STDIN = "-"

# format -> the endings that mean it
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
    """The format to read ``path`` in. Standard input is lines unless ``format`` says otherwise.

    >>> read_format("news.csv.gz"), read_format("-"), read_format("notes.md", "lines")
    ('csv', 'lines', 'lines')
    """
    return _rows_format(path, format, hint="Name its format (--format, or format= in Python)")


def rows_format(path: str, format: str | None = None) -> str:
    """The format to write rows of text to ``path`` in; the same ones that are read.

    >>> rows_format("news.csv.gz"), rows_format("-")
    ('csv', 'lines')
    """
    return _rows_format(path, format, hint="Give the output one of these endings")


def _rows_format(path: str, format: str | None, *, hint: str) -> str:
    if format is None and path == STDIN:
        return "lines"
    name = path[: -len(".gz")] if path.lower().endswith(".gz") else path
    return _choose(name, format, formats=READ_FORMATS, hint=hint)


def write_format(path: str) -> str:
    """The format to write ``path`` in.

    >>> write_format("vectors.npy")
    'npy'
    """
    return _choose(path, None, formats=WRITE_FORMATS, hint="Give the output one of these endings")


def _choose(name: str, format: str | None, *, formats: Mapping[str, tuple[str, ...]], hint: str) -> str:
    if format is not None:
        if format not in formats:
            raise UnknownNameError("format", format, formats)
        return format
    ending = PurePath(name).suffix.lower()
    for known, endings in formats.items():
        if ending in endings:
            return known
    shown = f"ending {ending!r} of {name!r}" if ending else f"name {name!r}, which has no ending,"
    choices = formats if "format=" in hint else (each for endings in formats.values() for each in endings)
    raise InputError(f"The {shown} does not tell the format.", hint=f"{hint}: {', '.join(choices)}.")
