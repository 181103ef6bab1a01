"""Read files of a package archive, a wheel (zip) or a tarball, without extracting it to disk."""

from __future__ import annotations

import gzip
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["members", "texts_of"]


def members(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member whose name matches the pattern, in the order of the archive."""
    wanted = re.compile(pattern)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as package:
            for name in filter(wanted.search, package.namelist()):
                yield name, package.read(name)
        return
    with tarfile.open(archive) as tarball:
        for member in tarball:  # one pass: seeking back in a gzipped file means decompressing it again
            if member.isfile() and wanted.search(member.name) and (opened := tarball.extractfile(member)):
                yield member.name, opened.read()


def texts_of(archive: Path, pattern: str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
    """The matching members as texts; those that end in .gz are decompressed."""
    for name, content in members(archive, pattern):
        raw = gzip.decompress(content) if name.endswith(".gz") else content
        yield raw.decode(encoding, errors="replace")
