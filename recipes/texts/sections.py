"""Sections of documents: a title and the prose below it.

Each ``read_`` function returns a reader, which yields the sections of a package archive. A section without a title has
its first sentence as the title.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from texts.archives import texts_of
from texts.cleaning import COMMON_WORDS, is_english, is_prose, key_of, plain, usable
from texts.splitting import FENCED, blocks, runs
from twinvec.data.sentences import split_sentences

__all__ = ["Section", "SectionReader", "is_telling", "read_manual_sections", "read_records", "read_terms", "section_of"]

BODY_WORDS = 40, 300  # fewer are refused, more are cut at the end of a sentence
TITLE_WORDS = 3, 30
CONTENT_WORDS = 3
WORD = re.compile(r"[^\W\d_]{3,}")
# A line of Markdown that starts with #, or a line with a rule of punctuation below it.
HEADING = re.compile(
    r"^(?:#{1,6}[ \t]+(?P<marked>\S.*?)[ \t]*#*|(?P<ruled>\S.*)\n(?P<rule>([=\-~^\"'`+*#.:])\4{2,}))[ \t]*$",
    re.MULTILINE,
)
TERM = re.compile(r"^name: (.+)\ndef: \"(.*?)\" \[(?:.*\n(?!comment))*?.*(?:\ncomment: (.*))?$", re.MULTILINE)


class Section(NamedTuple):
    """A title and the prose below it, which does not contain the title."""

    title: str
    body: str


SectionReader = Callable[[Path], Iterator[Section]]


def section_of(title: str, text: str) -> Section | None:
    """The section with a clean title and a body of whole sentences, or None if the body is too short or no prose.

    >>> section_of("A title", "Too short.") is None
    True
    """
    sentences = split_sentences(plain(text))
    if not title and sentences:
        title = sentences.pop(0)
    body = next(runs(sentences, max_words=BODY_WORDS[1]), "")
    if not BODY_WORDS[0] <= len(body.split()) <= BODY_WORDS[1] or not (is_prose(body) and is_english(body)):
        return None
    title = plain(title)
    return Section(title.lower() if title.isupper() else title, body)


def is_telling(section: Section) -> bool:
    """Whether the title can stand for the body: prose with three content words that the body does not repeat as such.

    >>> is_telling(Section("How to feed a young cat", "Kittens eat often.")), is_telling(Section("Options", "Any."))
    (True, False)
    """
    content = {word.lower() for word in WORD.findall(section.title)} - COMMON_WORDS
    return (
        TITLE_WORDS[0] <= len(section.title.split()) <= TITLE_WORDS[1]
        and len(content) >= CONTENT_WORDS
        and is_prose(section.title)
        and key_of(section.title) not in key_of(section.body)
    )


def read_manual_sections(pattern: str) -> SectionReader:
    """A reader of documentation in reStructuredText or Markdown: the prose paragraphs below each heading."""

    def sections(archive: Path) -> Iterator[Section]:
        for document in texts_of(archive, pattern):
            text = FENCED.sub("", document.replace("\r\n", "\n"))
            found = [match for match in HEADING.finditer(text) if _is_heading(match)]
            for match, following in zip_longest(found, found[1:]):
                below = text[match.end() : following.start() if following else None]
                prose = [part for block in blocks(below) if usable(part := plain(block))]
                section = section_of(match["marked"] or match["ruled"], " ".join(prose))
                if section:
                    yield section

    return sections


def _is_heading(match: re.Match[str]) -> bool:
    return bool(match["marked"]) or len(match["rule"]) >= len(match["ruled"].rstrip()) - 1


def read_records(pattern: str, *path: str, title: str = "", mark: str = r"\Z", end: str = r"\Z") -> SectionReader:
    """A reader of JSON files: the texts at ``path`` within each object that has it, until ``end``.

    ``title`` is the field next to the text, read until ``mark``; without it, the first sentence is the title.
    """
    last = re.compile(end)

    def sections(archive: Path) -> Iterator[Section]:
        for document in texts_of(archive, pattern):
            for record in _records(json.loads(document)):
                text = _at(record, path)
                name = record.get(title, "") if title else ""
                if isinstance(text, str) and isinstance(name, str) and (name or not title):
                    section = section_of(re.split(mark, name, maxsplit=1)[0], last.split(text, maxsplit=1)[0])
                    if section:
                        yield section

    return sections


def _records(value: object) -> Iterator[dict[str, object]]:
    """The objects of a list or of the values of an object, or else the value itself."""
    inner = value if isinstance(value, list) else [value, *value.values()] if isinstance(value, dict) else []
    yield from (item for item in inner if isinstance(item, dict))


def _at(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def read_terms(pattern: str) -> SectionReader:
    """A reader of an ontology in the OBO format: the name of a term, its definition and the comment on it."""

    def sections(archive: Path) -> Iterator[Section]:
        for document in texts_of(archive, pattern):
            for match in TERM.finditer(document):
                section = section_of(match[1], " ".join(filter(None, match.groups()[1:])).replace('\\"', '"'))
                if section:
                    yield section

    return sections
