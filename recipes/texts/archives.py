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
    """Name and content of each member whose name the pattern is found in, by name, so that the order is fixed."""
    wanted = re.compile(pattern)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for name in sorted(filter(wanted.search, file.namelist())):
                yield name, file.read(name)
        return
    with tarfile.open(archive) as file:
        found = [each for each in file.getmembers() if each.isfile() and wanted.search(each.name)]
        for member in sorted(found, key=lambda each: each.name):
            opened = file.extractfile(member)
            assert opened is not None  # it is a file
            yield member.name, opened.read()


def texts_of(archive: Path, pattern: str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
    """The members as texts; one that ends in .gz is unpacked first."""
    for name, content in members(archive, pattern):
        raw = gzip.decompress(content) if name.endswith(".gz") else content
        yield raw.decode(encoding, errors="replace")
