"""Read prose paragraphs of encyclopedia articles from a compressed XML dump with MediaWiki markup."""

from __future__ import annotations

import bz2
import html
import re
from collections.abc import Iterator
from pathlib import Path

from texts.archives import members
from texts.readers import Reader
from texts.splitting import passages
from twinvec.evaluation.tasks.documents import wikitext_blocks

__all__ = ["prose_of_wikitext", "read_wikipedia"]

ARTICLE = re.compile(r"<text [^>]*>(.*?)</text>", re.DOTALL)
OTHER_LANGUAGE = re.compile(r"\[\[[a-z-]{2,12}:[^\[\]]*\]\]")
EMPTIED = re.compile(r" ?\((?:[\s,;]|or|from)*\)")  # left by templates in brackets


def prose_of_wikitext(article: str) -> str:
    """The paragraphs of an article, without headings, lists, tables, pictures, notes and templates.

    >>> prose_of_wikitext("{{Box|a={{b}}}}\\n* item\\n= Use =\\n'''It''' is an [[Ore|ore]].<ref>X</ref>\\n[[de:Erz]]")
    'It is an ore.'
    """
    text = OTHER_LANGUAGE.sub("", html.unescape(article))
    paragraphs = (block.text for block in wikitext_blocks(text) if block.level == 0)
    return "\n\n".join(EMPTIED.sub("", paragraph).strip() for paragraph in paragraphs)


def read_wikipedia(pattern: str) -> Reader:
    """A reader of dumps compressed with bzip2: the paragraphs of each article, and their sentences."""

    def texts(archive: Path) -> Iterator[str]:
        for _, content in members(archive, pattern):
            for article in ARTICLE.findall(bz2.decompress(content).decode("utf-8", errors="replace")):
                yield from passages(prose_of_wikitext(article))

    return texts
