"""Sectioned documents from files: MediaWiki XML dumps (streaming), Markdown, HTML."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, cast
from xml.etree.ElementTree import Element, ParseError, iterparse

from twinvec.errors import InputError
from twinvec.evaluate.tasks.documents import Block, Document, build_document
from twinvec.evaluate.tasks.wikitext import wikitext_blocks
from twinvec.tables.lines import check_file, decoded_lines

__all__ = [
    "READERS",
    "html_blocks",
    "markdown_blocks",
    "read_documents",
    "read_html",
    "read_markdown",
    "read_mediawiki",
]


MARKDOWN_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
NO_PROSE = re.compile(r"^(?: {4}|\t|\s*(?:[-*+>|]|\d+[.)])\s|\s*\||\s*(?:[-=*_]\s*){3,}$)")
MARKDOWN_MARKS = re.compile(r"!\[[^\]]*\]\([^)]*\)|<!--.*?-->|</?[a-zA-Z][^>]*>|\*\*|__|(?<!\w)[*_]|[*_](?!\w)|`")
MARKDOWN_LINK = re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])")


def read_documents(path: str | Path) -> Iterator[Document]:
    """The documents of a file, read as its ending says: .xml (also .bz2, .gz), .md, .markdown, .html, .htm."""
    name = str(path).lower().removesuffix(".bz2").removesuffix(".gz")
    ending = Path(name).suffix
    if ending not in READERS:
        raise InputError(f"The ending {ending!r} of {path} is not known.", hint=f"Known are: {', '.join(READERS)}.")
    return READERS[ending](path)


def read_mediawiki(path: str | Path) -> Iterator[Document]:
    """The articles of a dump (namespace 0, no redirects), one at a time: memory stays that of a page."""
    file = check_file(str(path))
    with _open_packed(file) as stream:
        try:
            for page in _pages(stream):
                if page.get("ns", "0") == "0" and "redirect" not in page:
                    yield build_document(wikitext_blocks(page.get("text", "")), title=page.get("title", ""))
        except (ParseError, OSError, EOFError) as error:
            raise InputError(f"{path} is not a whole MediaWiki dump: {error}.", hint="Fetch it again.") from error


def _open_packed(file: Path) -> IO[bytes]:
    if file.suffix == ".bz2":
        return bz2.open(file)
    return cast(IO[bytes], gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def _pages(stream: IO[bytes]) -> Iterator[dict[str, str]]:
    """The fields of every page by their tags, without the tags' namespace, which changes from dump to dump."""
    root: Element | None = None
    for event, element in iterparse(stream, events=("start", "end")):
        if root is None:
            root = element
        if event == "end" and element.tag.rpartition("}")[2] == "page":
            # the first of each tag: a page's own title and id come before those of its revision
            yield {each.tag.rpartition("}")[2]: each.text or "" for each in reversed(list(element.iter()))}
            root.clear()


def read_markdown(path: str | Path) -> Iterator[Document]:
    """The one document of a Markdown file."""
    lines = [line for _, line in decoded_lines(str(path))]
    yield build_document(markdown_blocks("\n".join(lines)))


def markdown_blocks(text: str) -> Iterator[Block]:
    """Headings (``#``) and paragraphs; code blocks, lists, quotes and tables are left out.

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


def read_html(path: str | Path) -> Iterator[Document]:
    """The one document of an HTML file."""
    lines = [line for _, line in decoded_lines(str(path))]
    yield build_document(html_blocks("\n".join(lines)))


class _Blocks(HTMLParser):
    """Collects the text of headings and paragraphs; ``hidden`` counts the open elements whose text is not read."""

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
        """End the heading or paragraph that is open."""
        text = " ".join("".join(self.parts).split())
        if text:
            self.blocks.append(Block(self.level, text))
        self.parts, self.level = [], 0


def html_blocks(text: str) -> list[Block]:
    """Headings and paragraphs; scripts, styles, lists, tables, code and navigation are left out.

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
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
}
