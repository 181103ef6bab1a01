"""Wikitext as plain paragraphs and headings: the commonest markup is taken out, nothing is expanded.

Comments, references, templates, tables, files, categories, galleries and lists go; of links their text stays.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from twinvec.evaluate.tasks.documents import Block

__all__ = ["strip_wikitext", "wikitext_blocks"]

HEADING = re.compile(r"^(={1,6})\s*(.+?)\s*\1\s*$")
LIST_OR_TABLE = re.compile(r"^[*#:;|!]")
GONE = re.compile(
    r"<!--.*?-->|<ref\b[^>]*/>|<(ref|math|gallery|timeline|syntaxhighlight|source|code|score|table)\b[^>]*>.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:(?!\{\|).)*?\|\}", re.DOTALL)
NO_TEXT_LINK = re.compile(
    r"\[\[\s*(?:file|image|category|datei|bild|kategorie|fichier|archivo|media)\s*:[^\[\]]*\]\]", re.IGNORECASE
)
LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
OUTER_LINK = re.compile(r"\[(?:https?:)?//\S+\s*([^\]]*)\]")
MARKS = re.compile(r"'{2,5}|</?[a-zA-Z][^>]*>|__[A-Z]+__")


def strip_wikitext(text: str) -> str:
    """The text without its markup; headings and line breaks stay.

    >>> strip_wikitext("'''Cats''' {{lang|la|{{x}}}}eat [[Fish|some fish]]<ref>A book.</ref>.")
    'Cats eat some fish.'
    """
    text = GONE.sub("", text)
    text = _without_templates(text)
    text = NO_TEXT_LINK.sub("", text)
    text = LINK.sub(r"\1", text)
    text = NO_TEXT_LINK.sub("", text)  # those whose captions held links themselves
    text = OUTER_LINK.sub(r"\1", text)
    return html.unescape(MARKS.sub("", text)).replace("\N{NO-BREAK SPACE}", " ")


def wikitext_blocks(text: str) -> Iterator[Block]:
    """Headings and paragraphs of a page. A line is a paragraph.

    >>> list(wikitext_blocks("Lead.\\n== Food ==\\n* fish\\nCats eat fish."))
    [Block(level=0, text='Lead.'), Block(level=2, text='Food'), Block(level=0, text='Cats eat fish.')]
    """
    for line in map(str.strip, strip_wikitext(text).split("\n")):
        heading = HEADING.match(line)
        if heading:
            yield Block(len(heading[1]), heading[2])
        elif line and not LIST_OR_TABLE.match(line):
            yield Block(0, line)


def _without_templates(text: str) -> str:
    """Take templates and tables out from the innermost outwards, until nothing is left to take."""
    while True:
        text, n_taken = TEMPLATE.subn("", text)
        if not n_taken:
            return text
