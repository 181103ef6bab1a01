"""Public data sets into the data folder: downloaded, checked, read, and written as gzipped tables."""

from __future__ import annotations

import gzip
import logging
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluate.fetching.downloading import TIMEOUT_S, download
from twinvec.evaluate.fetching.rows import RawTable
from twinvec.evaluate.fetching.sources import SOURCES, DataSet
from twinvec.tables import new_file

__all__ = ["install"]

logger = logging.getLogger(__name__)

DOWNLOADS = ".downloads"


def install(
    name: str,
    folder: Path,
    *,
    replace: bool = False,
    sources: Mapping[str, DataSet] = SOURCES,
    timeout_s: float = TIMEOUT_S,
) -> list[Path]:
    """Fetch a data set into the data folder; returns the files written, none where all are there already.

    A kill at any moment leaves whole files only; running it again goes on where it was.
    """
    if name not in sources:
        raise UnknownNameError("data set", name, sources)
    data_set = sources[name]
    note = folder / DOWNLOADS / f"{name}.files"  # what an earlier call made
    if not replace and note.is_file() and all((folder / line).is_file() for line in note.read_text().splitlines()):
        return []
    files = [download(each, folder / DOWNLOADS, timeout_s=timeout_s) for each in data_set.downloads]
    try:
        tables = [(table, folder / f"{table.place}.tsv.gz") for table in data_set.read(files)]
        written = [target for table, target in tables if _write(table, target, replace=replace)]
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, KeyError, IndexError, ValueError) as error:
        for file in files:
            file.unlink(missing_ok=True)
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{name}: what was downloaded cannot be read ({type(error).__name__}: {error}).",
            hint="It is removed. Its owner may have changed its form.",
        ) from error
    for file in files:
        file.unlink()
    with new_file(note, replace=True) as noted:
        noted.write("".join(f"{target.relative_to(folder)}\n" for _, target in tables).encode())
    return written


def _write(table: RawTable, target: Path, *, replace: bool) -> bool:
    """Write a table as UTF-8, tab-separated, gzipped, one header line, white space folded, without quotes.

    A file that is there is the user's, or whole from a run that was killed: it stays, unless it is to be replaced.
    """
    if target.exists() and not replace:
        logger.warning("%s exists already and is kept.", target)
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_file(target, replace=True) as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        for row in (table.columns, *table.rows):
            file.write(("\t".join(" ".join(cell.split()) for cell in row) + "\n").encode())
    return True
