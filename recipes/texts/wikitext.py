"""Encyclopedia articles in MediaWiki's markup, as a compressed XML dump has them: their paragraphs of prose."""

from __future__ import annotations

import bz2
import html
import re
from collections.abc import Iterator
from pathlib import Path

from texts.archives import members
from texts.readers import Reader
from texts.splitting import passages

__all__ = ["prose_of_wikitext", "read_wikipedia"]

ARTICLE = re.compile(r"<text [^>]*>(.*?)</text>", re.DOTALL)
NOT_PROSE = re.compile(r"<ref[^>/]*/>|<ref.*?</ref>|<(math|gallery|table|code|pre)\b.*?</\1>|<!--.*?-->", re.DOTALL)
INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)
PICTURE = re.compile(r"\[\[(?:File|Image|Category|[a-z-]{2,12}):(?:[^\[\]]|\[\[[^\[\]]*\]\])*\]\]")
LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
OUTER_LINK = re.compile(r"\[https?://[^\s\]]+ ?([^\]]*)\]")
STRESS = re.compile(r"'{2,}")
MARKED_LINE = re.compile(r"[=*#:;|!{}<]")
EMPTIED = re.compile(r" ?\((?:[\s,;]|or|from)*\)")


def prose_of_wikitext(article: str) -> str:
    """The paragraphs of an article, without headings, lists, tables, pictures, notes and templates.

    >>> prose_of_wikitext("{{Box|a={{b}}}}\\n== Use ==\\n'''Iron''' is a [[Metal|metal]].<ref>X</ref>\\n* item")
    'Iron is a metal.'
    """
    text = NOT_PROSE.sub("", html.unescape(article))
    n_found = 1
    while n_found:  # from the innermost template or table outwards
        text, n_found = INNERMOST.subn("", text)
    text = OUTER_LINK.sub(r"\1", LINK.sub(r"\1", PICTURE.sub("", text)))
    lines = (STRESS.sub("", EMPTIED.sub("", line)).strip() for line in text.splitlines())
    return "\n\n".join(line for line in lines if line and not MARKED_LINE.match(line))


def read_wikipedia(pattern: str) -> Reader:
    """A reader of dumps compressed with bzip2: each article's paragraphs, and their sentences."""

    def texts(archive: Path) -> Iterator[str]:
        for _, content in members(archive, pattern):
            for article in ARTICLE.findall(bz2.decompress(content).decode("utf-8", errors="replace")):
                yield from passages(prose_of_wikitext(article))

    return texts
