"""Readers of common text formats: tables, lines, documents, JSON, and marked spans.

Each function returns a reader, which yields the raw texts of a file; cleaning and sampling come later.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from texts.archives import texts_of
from texts.cleaning import plain, usable
from texts.splitting import blocks, passages, runs

__all__ = [
    "Reader",
    "connected",
    "read_columns",
    "read_documents",
    "read_fields",
    "read_lines",
    "read_manuals",
    "read_spans",
]

Reader = Callable[[Path], Iterator[str]]

# Boundaries within a text field: the end of an HTML block, or the start of a list item.
BLOCK_END = re.compile(r"</(?:p|li|dd|td|h\d|note|important)>|<br ?/?>|\n(?=\s*(?:[-*•]|\d+[.)]) )", re.IGNORECASE)


def read_columns(*columns: str) -> Reader:
    """A reader of a table, gzipped or not: the cells of these columns."""

    def texts(file: Path) -> Iterator[str]:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield from (row[column] for column in columns)

    return texts


def read_lines(pattern: str) -> Reader:
    """A reader of text files with one text per line."""

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            yield from document.splitlines()

    return texts


def read_documents(pattern: str, *, divider: str = "\n\n", skip: str = "") -> Reader:
    """A reader of prose: paragraphs and sentences, without the paragraphs that match ``skip``."""

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            for part in re.split(divider, document.replace("\r\n", "\n")):
                if not (skip and re.search(skip, part)):
                    yield from passages(part)

    return texts


def read_manuals(pattern: str) -> Reader:
    """A reader of documentation in reStructuredText or Markdown: the paragraphs of prose, and their sentences."""

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            yield from connected(blocks(document))

    return texts


def connected(parts: Iterable[str]) -> Iterator[str]:
    """Usable adjacent paragraphs joined into long passages, then each paragraph and each sentence."""
    good = [text for part in parts if usable(text := plain(part))]
    yield from runs(good)
    for text in good:
        yield from passages(text)


def read_fields(pattern: str, *names: str) -> Reader:
    """A reader of JSON files: the strings of these fields (default: all) at any depth, alone or in lists."""
    wanted = frozenset(names)

    def texts(archive: Path) -> Iterator[str]:
        documents = (json.loads(document) for document in texts_of(archive, pattern))
        fields = (field for document in documents for field in _fields(document, wanted, inside=not wanted))
        for field in dict.fromkeys(fields):  # API descriptions repeat from version to version
            yield from _separated(field)

    return texts


def _fields(value: object, wanted: frozenset[str], *, inside: bool) -> Iterator[str]:
    match value:
        case str() if inside:
            yield value
        case list():
            for item in value:
                yield from _fields(item, wanted, inside=inside)
        case dict():
            for name, item in value.items():
                if name != "translations":  # into other languages
                    yield from _fields(item, wanted, inside=name in wanted or not wanted)


def _separated(field: str) -> Iterator[str]:
    return passages(BLOCK_END.sub("\n\n", field))


def read_spans(pattern: str, span: str) -> Reader:
    """A reader of text files: the matches of the first group of ``span``, as passages."""
    found = re.compile(span, re.DOTALL | re.MULTILINE)

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            for match in found.finditer(document):
                yield from _separated(match[1])

    return texts
