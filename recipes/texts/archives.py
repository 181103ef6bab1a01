"""Members of a package as the registry ships it: a wheel (zip) or a tarball. Nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["members", "texts_of"]


def members(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member whose name the pattern is found in, in the order of the archive."""
    wanted = re.compile(pattern)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as package:
            for name in filter(wanted.search, package.namelist()):
                yield name, package.read(name)
        return
    with tarfile.open(archive) as tarball:
        for member in tarball:  # one pass: to go back in a gzipped file is to unpack it again from its start
            if member.isfile() and wanted.search(member.name) and (opened := tarball.extractfile(member)):
                yield member.name, opened.read()


def texts_of(archive: Path, pattern: str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
    """The members as texts; one that ends in .gz is unpacked first."""
    for name, content in members(archive, pattern):
        raw = gzip.decompress(content) if name.endswith(".gz") else content
        yield raw.decode(encoding, errors="replace")
