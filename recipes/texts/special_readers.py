"""Readers of special formats: WordNet, fortunes, chat rules, papers, e-mail, docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from texts.archives import texts_of
from texts.cleaning import COMMON_WORDS
from texts.readers import Reader, connected
from texts.splitting import blocks, passages

__all__ = [
    "prose_of_docstring",
    "questions_of",
    "read_chat_questions",
    "read_chat_rules",
    "read_docstrings",
    "read_fortunes",
    "read_mail",
    "read_papers",
    "read_wordnet_examples",
    "read_wordnet_glosses",
]

EXAMPLE = re.compile(r'"([^"]+)"')
CHAT_PATTERN = re.compile(r"<pattern>([A-Z0-9' ]+)</pattern>")
CHAT_ANSWER = re.compile(r"<template>([^<>]+)</template>")
OFFENSIVE = re.compile(
    r"\b(?:SEX|PENIS|VAGINA|FUCK|SHIT|CUN|DICK|ASS|GAY|RAPE|WHORE|TITS|BOOBS|NIGG|SLUT|ANAL)", re.IGNORECASE
)
FORTUNE_END = re.compile(r"^%\n", re.MULTILINE)
FORTUNE_AUTHOR = re.compile(r"(?:^\s*|(?<=[.!?\"])\s+)--?\s?[A-Z\"].*\Z", re.DOTALL | re.MULTILINE)
MAIL_SUBJECT = re.compile(r"^Subject: (?:(?:re|fwd?|aw): *|\[[^\]]*\] *)*(.+)", re.IGNORECASE | re.MULTILINE)
MAIL_QUOTE = re.compile(r"^\s*(?:[>|:]|\w{1,3}> ).*$", re.MULTILINE)
MAIL_END = re.compile(r"^(?:-- ?|[-_=]{5,}.*)$", re.MULTILINE)
MAIL_NOTE = re.compile(r"\b(?:wrote|writes|said|unsubscribe|mailing list)\b", re.IGNORECASE)
UNDERLINE = re.compile(r"[-=~^]{3,}\s*$")
GOOGLE_SECTION = re.compile(
    r"(?:Args|Arguments|Attributes|Example|Examples|Keyword Args|Parameters|Raises|References|Returns|See Also|Yields"
    r"|Inputs|Outputs|Usage|Options|Todo)\s*:?\s*$"
)
PROSE_SECTIONS = frozenset({"notes", "note", "background", "description", "extended summary", "details"})


def _glosses(archive: Path) -> Iterator[str]:
    for data in texts_of(archive, r"dict/data\.(adj|adv|noun|verb)$"):
        yield from (line.partition(" | ")[2].strip() for line in data.splitlines() if " | " in line)


def read_wordnet_glosses(archive: Path) -> Iterator[str]:
    """The definitions of WordNet's synsets, without their examples."""
    for gloss in _glosses(archive):
        yield EXAMPLE.split(gloss, maxsplit=1)[0].strip(" ;:")


def read_wordnet_examples(archive: Path) -> Iterator[str]:
    """The example sentences in WordNet's glosses."""
    for gloss in _glosses(archive):
        yield from EXAMPLE.findall(gloss)


def read_fortunes(pattern: str) -> Reader:
    """A reader of fortune files: items between lines with a percent sign, without their authors."""

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            for fortune in FORTUNE_END.split(document):
                yield FORTUNE_AUTHOR.sub("", fortune)

    return texts


def read_chat_rules(pattern: str) -> Reader:
    """A reader of AIML: the questions without wildcards, in lower case, and the answers without tags."""

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            for question in CHAT_PATTERN.findall(document):
                if not COMMON_WORDS.isdisjoint(question.lower().split()):  # some are in other languages
                    yield question.capitalize()
            yield from CHAT_ANSWER.findall(document)

    return texts


def read_chat_questions(pattern: str, opening: str) -> Reader:
    """A reader of AIML: the questions without wildcards whose first word matches ``opening``, in lower case."""
    wanted = re.compile(rf"(?:{opening})\b", re.IGNORECASE)

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            for question in CHAT_PATTERN.findall(document):
                if wanted.match(question) and not OFFENSIVE.search(question):
                    yield f"{question.strip().capitalize()}?"

    return texts


def questions_of(read: Reader) -> Reader:
    """A reader of the questions among the texts of another reader."""

    def texts(archive: Path) -> Iterator[str]:
        return (text for text in read(archive) if text.rstrip("\"'\u201d\u2019 ").endswith("?"))

    return texts


def read_papers(pattern: str, *, entry: str, title: str, abstract: str) -> Reader:
    """A reader of papers in XML, given the names of its elements: "Title. Abstract", the title, and the sentences.

    The XML may be a string of a JSON file.
    """
    entries = re.compile(rf"<{entry}>.*?</{entry}>", re.DOTALL)
    titles = re.compile(rf"<{title}>(.*?)</{title}>", re.DOTALL)
    abstracts = re.compile(rf"<{abstract}(?: [^<>]*)?>(.*?)</{abstract}>", re.DOTALL)

    def texts(archive: Path) -> Iterator[str]:
        for document in texts_of(archive, pattern):
            for paper in entries.findall(document.replace("\\n", " ").replace('\\"', '"')):
                heading = titles.search(paper)
                body = " ".join(abstracts.findall(paper)).strip()
                if heading and not heading[1].startswith("["):  # brackets: translated from another language
                    name = " ".join(heading[1].split()).rstrip(".")
                    yield name
                    if body:
                        yield f"{name}{'' if name.endswith('?') else '.'} {body}"
                        yield from passages(body)

    return texts


def read_mail(pattern: str) -> Reader:
    """A reader of plain e-mail: the subject, and the paragraphs without headers, quotations and signatures."""

    def texts(archive: Path) -> Iterator[str]:
        for message in texts_of(archive, pattern):
            head, _, body = message.replace("\r\n", "\n").partition("\n\n")
            if "multipart/" in head or "text/html" in head or "base64" in head:
                continue
            if subject := MAIL_SUBJECT.search(head):
                yield subject[1]
            for part in MAIL_END.split(MAIL_QUOTE.sub("", body))[0].split("\n\n"):
                if not MAIL_NOTE.search(part):
                    yield from passages(part)

    return texts


def read_docstrings(archive: Path) -> Iterator[str]:
    """The prose in the docstrings of a Python package without its tests: paragraphs and sentences."""
    for source in texts_of(archive, r"^(?!.*(?:/tests?/|/test_|/_vendor|/extern)).*\.py$"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                tree = ast.parse(source)
        except (SyntaxError, ValueError):  # a template, or another Python version
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield from connected(blocks(prose_of_docstring(text)))


def prose_of_docstring(docstring: str) -> str:
    """A docstring without its sections of parameters, results, examples and references.

    >>> prose_of_docstring("Add two.\\n\\nParameters\\n----------\\nx : int\\n    One.\\n\\nNotes\\n-----\\nSlow.")
    'Add two.\\n\\nSlow.'
    """
    lines = inspect.cleandoc(docstring).splitlines()
    kept: list[str] = []
    in_prose = True
    for line, following in pairwise([*lines, ""]):
        if UNDERLINE.match(following) and line.strip():
            in_prose = line.strip().lower() in PROSE_SECTIONS
        elif GOOGLE_SECTION.match(line):
            in_prose = False
        elif in_prose and not UNDERLINE.match(line):
            kept.append(line)
    return "\n".join(kept)
