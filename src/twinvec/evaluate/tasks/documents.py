"""A document in sections, put together from headings and paragraphs as a reader meets them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["SECTION_LEVEL", "Block", "Document", "Section", "build_document"]

SECTION_LEVEL = 2  # headings down to this level open a section; deeper ones stay inside theirs


@dataclass(frozen=True)
class Section:
    """A heading, and the paragraphs below it; the lead, before any heading of a section, has none."""

    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A title, and the sections in their order, the lead first if there is one."""

    title: str
    sections: tuple[Section, ...]


class Block(NamedTuple):
    """A heading of a level from 1, or a paragraph, which has level 0."""

    level: int
    text: str


def build_document(blocks: Iterable[Block], *, title: str = "") -> Document:
    """Gather blocks into sections. Without a title, a first heading of level 1 is it, and the lead follows it.

    >>> blocks = [Block(1, "Cats"), Block(0, "Lead."), Block(2, "Food"), Block(3, "Fish"), Block(0, "They eat.")]
    >>> document = build_document(blocks)
    >>> document.title, [(section.title, section.paragraphs) for section in document.sections]
    ('Cats', [('', ('Lead.',)), ('Food', ('They eat.',))])
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    for level, text in blocks:
        if level == 0:
            found[-1][1].append(text)
        elif level == 1 and not title and len(found) == 1 and not found[0][1]:
            title = text
        elif level <= SECTION_LEVEL:
            found.append((text, []))
    sections = (Section(heading, tuple(paragraphs)) for heading, paragraphs in found if paragraphs)
    return Document(title, tuple(sections))
