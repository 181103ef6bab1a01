"""Documents with sections, read from MediaWiki dumps, Markdown and HTML."""

from __future__ import annotations

import bz2
import gzip
import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, NamedTuple, cast
from xml.etree.ElementTree import Element, ParseError, iterparse

from twinvec.data.table import check_file, decoded_lines
from twinvec.errors import InputError

__all__ = ["READERS", "Document", "Section", "read_documents", "strip_wikitext", "wikitext_blocks"]

SECTION_LEVEL = 2  # headings of this level or above start a section; deeper ones belong to their section


@dataclass(frozen=True)
class Section:
    """A heading and its paragraphs; the title of the lead, before the first section, is empty."""

    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A title and the sections in order, the lead first if there is one."""

    title: str
    sections: tuple[Section, ...]


class Block(NamedTuple):
    """A heading, with a level from 1, or a paragraph, with level 0."""

    level: int
    text: str


def build_document(blocks: Iterable[Block], *, title: str = "") -> Document:
    """Group blocks into sections. If ``title`` is empty, a leading heading of level 1 becomes the title.

    >>> blocks = [Block(1, "Cats"), Block(0, "Lead."), Block(2, "Food"), Block(3, "Fish"), Block(0, "They eat.")]
    >>> document = build_document(blocks)
    >>> document.title, [(section.title, section.paragraphs) for section in document.sections]
    ('Cats', [('', ('Lead.',)), ('Food', ('They eat.',))])
    """
    parts: list[tuple[str, list[str]]] = [("", [])]
    for level, text in blocks:
        if level == 0:
            parts[-1][1].append(text)
        elif level == 1 and not title and len(parts) == 1 and not parts[0][1]:
            title = text
        elif level <= SECTION_LEVEL:
            parts.append((text, []))
    return Document(title, tuple(Section(heading, tuple(paragraphs)) for heading, paragraphs in parts if paragraphs))


HEADING = re.compile(r"^(={1,6})\s*(.+?)\s*\1\s*$")
LIST_OR_TABLE = re.compile(r"^[*#:;|!]")
NO_CONTENT = re.compile(
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
    """The text without wiki markup; headings and line breaks stay.

    >>> strip_wikitext("'''Cats''' {{lang|la|{{x}}}}eat [[Fish|some fish]]<ref>A book.</ref>.")
    'Cats eat some fish.'
    """
    text = NO_CONTENT.sub("", text)
    while (shorter := TEMPLATE.sub("", text)) != text:  # templates and tables, from the innermost outward
        text = shorter
    text = NO_TEXT_LINK.sub("", text)
    text = LINK.sub(r"\1", text)
    text = NO_TEXT_LINK.sub("", text)  # those with links in their captions
    text = OUTER_LINK.sub(r"\1", text)
    return html.unescape(MARKS.sub("", text)).replace("\N{NO-BREAK SPACE}", " ")


def wikitext_blocks(text: str) -> Iterator[Block]:
    """The headings and paragraphs of a page; each line is a paragraph.

    >>> list(wikitext_blocks("Lead.\\n== Food ==\\n* fish\\nCats eat fish."))
    [Block(level=0, text='Lead.'), Block(level=2, text='Food'), Block(level=0, text='Cats eat fish.')]
    """
    for line in map(str.strip, strip_wikitext(text).split("\n")):
        heading = HEADING.match(line)
        if heading:
            yield Block(len(heading[1]), heading[2])
        elif line and not LIST_OR_TABLE.match(line):
            yield Block(0, line)


MARKDOWN_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
NO_PROSE = re.compile(r"^(?: {4}|\t|\s*(?:[-*+>|]|\d+[.)])\s|\s*\||\s*(?:[-=*_]\s*){3,}$)")
MARKDOWN_MARKS = re.compile(r"!\[[^\]]*\]\([^)]*\)|<!--.*?-->|</?[a-zA-Z][^>]*>|\*\*|__|(?<!\w)[*_]|[*_](?!\w)|`")
MARKDOWN_LINK = re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])")


def read_documents(path: str | Path) -> Iterator[Document]:
    """Read the documents of a .xml (MediaWiki dump, also .bz2 or .gz), .md, .markdown, .html or .htm file."""
    ending = Path(str(path).lower().removesuffix(".bz2").removesuffix(".gz")).suffix
    if ending not in READERS:
        raise InputError(f"Unsupported file type {ending!r} of {path}.", hint=f"Use one of: {', '.join(READERS)}.")
    return READERS[ending](path)


def read_mediawiki(path: str | Path) -> Iterator[Document]:
    """Yield the articles of a dump (namespace 0, no redirects); memory use is that of one page."""
    file = check_file(str(path))
    with _open_packed(file) as stream:
        try:
            for page in _pages(stream):
                if page.get("ns", "0") == "0" and "redirect" not in page:
                    yield build_document(wikitext_blocks(page.get("text", "")), title=page.get("title", ""))
        except (ParseError, OSError, EOFError) as error:
            raise InputError(
                f"{path} is damaged or not a MediaWiki dump: {error}.", hint="Download it again."
            ) from error


def _open_packed(file: Path) -> IO[bytes]:
    if file.suffix == ".bz2":
        return bz2.open(file)
    return cast(IO[bytes], gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def _pages(stream: IO[bytes]) -> Iterator[dict[str, str]]:
    """Yield the fields of every page by tag, without the XML namespace, which differs between dumps."""
    root: Element | None = None
    for event, element in iterparse(stream, events=("start", "end")):
        if root is None:
            root = element
        if event == "end" and element.tag.rpartition("}")[2] == "page":
            # keep the first of each tag: a page's own title and id come before those of its revision
            yield {each.tag.rpartition("}")[2]: each.text or "" for each in reversed(list(element.iter()))}
            root.clear()


def read_page(path: str | Path, *, blocks: Callable[[str], Iterable[Block]]) -> Iterator[Document]:
    """Yield the one document of a Markdown or HTML file."""
    yield build_document(blocks("\n".join(line for _, line in decoded_lines(str(path)))))


def markdown_blocks(text: str) -> Iterator[Block]:
    """The headings (``#``) and paragraphs, without code blocks, lists, quotes and tables.

    >>> list(markdown_blocks("# Cats\\n\\nThey *eat*\\n[fish](x).\\n\\n```\\n# no\\n```"))
    [Block(level=1, text='Cats'), Block(level=0, text='They eat fish.')]
    """
    paragraph: list[str] = []
    fence = ""
    for line in [*text.split("\n"), ""]:
        mark = FENCE.match(line)
        heading = MARKDOWN_HEADING.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        if line.strip() and not (mark or heading or NO_PROSE.match(line)):
            paragraph.append(line.strip())
            continue
        if paragraph:
            yield Block(0, _plain(" ".join(paragraph)))
            paragraph = []
        fence = mark[1] if mark else ""
        if heading:
            yield Block(len(heading[1]), _plain(heading[2]))


def _plain(text: str) -> str:
    return MARKDOWN_MARKS.sub("", MARKDOWN_LINK.sub(r"\1", text)).strip()


class _Blocks(HTMLParser):
    """Collects the text of headings and paragraphs; ``hidden`` counts the open elements whose text is skipped."""

    HIDDEN = frozenset({"script", "style", "head", "nav", "header", "footer", "pre", "table", "ul", "ol", "aside"})
    HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
    BREAKS = frozenset({"p", "div", "section", "article", "main", "body", "blockquote", "br", "hr", "dl", "dd", "dt"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.parts: list[str] = []
        self.hidden = 0
        self.level = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.HIDDEN or tag in self.HEADINGS or tag in self.BREAKS:
            self.flush()
        self.hidden += tag in self.HIDDEN
        if tag in self.HEADINGS:
            self.level = int(tag[1])

    def handle_endtag(self, tag: str) -> None:
        if tag in self.HIDDEN or tag in self.HEADINGS or tag in self.BREAKS:
            self.flush()
        if tag in self.HIDDEN:
            self.hidden = max(0, self.hidden - 1)

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)

    def flush(self) -> None:
        """End the current heading or paragraph."""
        text = " ".join("".join(self.parts).split())
        if text:
            self.blocks.append(Block(self.level, text))
        self.parts, self.level = [], 0


def html_blocks(text: str) -> list[Block]:
    """The headings and paragraphs, without scripts, styles, lists, tables, code and navigation.

    >>> html_blocks("<h1>Cats</h1><script>x</script><p>They <b>eat</b>.</p>")
    [Block(level=1, text='Cats'), Block(level=0, text='They eat.')]
    """
    parser = _Blocks()
    parser.feed(text)
    parser.close()
    parser.flush()
    return parser.blocks


READERS: dict[str, Callable[[str | Path], Iterator[Document]]] = {
    ".xml": read_mediawiki,
    **dict.fromkeys((".md", ".markdown"), partial(read_page, blocks=markdown_blocks)),
    **dict.fromkeys((".html", ".htm"), partial(read_page, blocks=html_blocks)),
}
