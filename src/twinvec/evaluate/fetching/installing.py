"""Public data sets into the data folder: downloaded, checked, read, and written as gzipped tables."""

from __future__ import annotations

import gzip
import logging
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, TypeVar

from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluate.fetching.downloading import TIMEOUT_S, check_digest, download
from twinvec.evaluate.fetching.rows import RawTable
from twinvec.evaluate.fetching.sources import SOURCES, DataSet, Download
from twinvec.tables import new_file

__all__ = ["install"]

logger = logging.getLogger(__name__)

DOWNLOADS = ".downloads"
# What a file of another form makes the readers raise.
UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
    *(LookupError, ValueError, TypeError, AttributeError, RuntimeError),  # RuntimeError: too deep, or encrypted
)

Item = TypeVar("Item")


class _NotReadable(Exception):
    """The files are not of the form that the data set has."""


def install(
    name: str,
    folder: Path,
    *,
    replace: bool = False,
    sources: Mapping[str, DataSet] = SOURCES,
    files_in: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> list[Path]:
    """Fetch a data set into the data folder; returns the files written, none where all are there already.

    With ``files_in`` nothing is fetched: its files, named as in their addresses, are in that folder already. A kill at
    any moment leaves whole files only, an error none; running it again goes on where it was.
    """
    if name not in sources:
        raise UnknownNameError("data set", name, sources)
    data_set = sources[name]
    note = folder / DOWNLOADS / f"{name}.files"  # what an earlier call made
    if not replace and note.is_file() and all((folder / line).is_file() for line in note.read_text().splitlines()):
        return []
    if files_in is None:
        files = [_fetched(each, folder / DOWNLOADS, timeout_s, name) for each in data_set.downloads]
    else:
        files = [_local(each, files_in, name) for each in data_set.downloads]
    try:
        targets, written = _write_all(data_set, files, folder, replace=replace)
    except _NotReadable as error:
        raise InputError(f"{name}: {error}", hint=_dropped(files, files_in)) from error
    _dropped(files, files_in)
    note.parent.mkdir(parents=True, exist_ok=True)
    with new_file(note, replace=True) as noted:
        noted.write("".join(f"{target.relative_to(folder)}\n" for target in targets).encode())
    return written


def _fetched(wanted: Download, folder: Path, timeout_s: float, name: str) -> Path:
    try:
        return download(wanted, folder, timeout_s=timeout_s)
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", hint=error.hint) from error


def _local(wanted: Download, folder: Path, name: str) -> Path:
    file = folder / wanted.name
    if not file.is_file():
        raise InputError(f"{name}: there is no file {file}.", hint=f"Fetch it from {wanted.address}.")
    check_digest(wanted, file, source=str(file), hint=f"It is not the file that {wanted.address} once gave.")
    return file


def _dropped(files: list[Path], files_in: Path | None) -> str:
    """Remove what was downloaded, never the user's own files; says which."""
    if files_in is not None:
        return f"Check the files in {files_in}."
    for file in files:
        file.unlink(missing_ok=True)
    return "It is removed. Its owner may have changed its form."


def _write_all(data_set: DataSet, files: list[Path], folder: Path, *, replace: bool) -> tuple[list[Path], list[Path]]:
    """The files of all tables, and those written now. They take their names when all of them are whole."""
    targets, written = [], []
    with ExitStack() as whole:
        for table in _readable(data_set.read(files)):
            target = folder / f"{table.place}.tsv.gz"
            targets.append(target)
            if target.exists() and not replace:  # the user's, or whole from a run that was killed
                logger.warning("%s exists already and is kept.", target)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(table, whole.enter_context(new_file(target, replace=True)))
            written.append(target)
    return targets, written


def _write(table: RawTable, raw: IO[bytes]) -> None:
    """Write a table as UTF-8, tab-separated, gzipped, one header line, white space folded, without quotes."""
    with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        for line in _readable(_lines(table)):
            file.write(line)


def _lines(table: RawTable) -> Iterator[bytes]:
    for row in chain([table.columns], table.rows):
        yield ("\t".join(" ".join(cell.split()) for cell in row) + "\n").encode()


def _readable(items: Iterable[Item]) -> Iterator[Item]:
    """The items; whatever goes wrong while they are read is the fault of the files, unlike what the disk does."""
    try:
        yield from items
    except InputError as error:
        raise _NotReadable(error.problem) from error
    except UNREADABLE as error:
        raise _NotReadable(f"what was downloaded cannot be read ({type(error).__name__}: {error}).") from error
