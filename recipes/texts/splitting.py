"""Split documents into paragraphs, and paragraphs into groups of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from texts.cleaning import MAX_WORDS, fold
from twinvec.data.sentences import split_sentences

__all__ = ["blocks", "paragraphs", "passages", "runs"]

RUN_WORDS = 150
FENCED = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
# A line that is indented, starts with a mark of a list, directive, heading, table, quotation or prompt, or is a rule.
NO_PROSE = re.compile(r"\s|\.\. |[-*+•] |\d+[.)] |[#|>:@$%<{}\[\]]|[-=~^\"'`.*+#]{3,}\s*$|\S+\s*::|\w+ ?: ?\w+$")
BLANK_LINE = re.compile(r"\n\s*\n")


def paragraphs(document: str) -> Iterator[str]:
    """The paragraphs of a document, separated by blank lines, each on one line.

    >>> list(paragraphs("One\\ntwo.\\n \\nThree."))
    ['One two.', 'Three.']
    """
    return (folded for part in BLANK_LINE.split(document) if (folded := fold(part)))


def runs(parts: Sequence[str], *, max_words: int = RUN_WORDS) -> Iterator[str]:
    """Groups of adjacent sentences, each with at most ``max_words``.

    >>> list(runs(["One two.", "Three.", "Four five."], max_words=3))
    ['One two. Three.', 'Four five.']
    """
    run: list[str] = []
    n_words = 0
    for part in parts:
        n_more = len(part.split())
        if run and n_words + n_more > max_words:
            yield " ".join(run)
            run, n_words = [], 0
        run.append(part)
        n_words += n_more
    if run:
        yield " ".join(run)


def passages(document: str) -> Iterator[str]:
    """Each paragraph of a document, and each of its sentences. A paragraph that is too long is split into groups.

    >>> list(passages("It rains. We go.\\n\\nWhy?"))
    ['It rains. We go.', 'It rains.', 'We go.', 'Why?']
    """
    for paragraph in paragraphs(document):
        parts = split_sentences(paragraph)
        yield from runs(parts) if len(paragraph.split()) > MAX_WORDS else [paragraph]
        if len(parts) > 1:
            yield from parts


def blocks(document: str) -> Iterator[str]:
    """The prose paragraphs of reStructuredText or Markdown: no headings, lists, directives, code or tables.

    >>> list(blocks("Title\\n=====\\n\\nText\\nhere.\\n\\n.. note::\\n\\n    Set in.\\n\\n>>> code\\n"))
    ['Text here.']
    """
    for block in BLANK_LINE.split(FENCED.sub("", document).strip("\n")):
        lines = block.splitlines()
        if lines and not any(NO_PROSE.match(line) for line in lines):
            yield fold(block)
