"""Texts written for this project: by template with WordNet's words, and one by one (the folder ``written``)."""

from __future__ import annotations

from dataclasses import replace

from texts.caption_templates import CAPTIONS, caption_words
from texts.general import WORDNET
from texts.generated import read_generated
from texts.opinion_templates import OPINIONS, opinion_words
from texts.question_templates import QUESTIONS, question_words
from texts.readers import read_columns
from texts.source import Package, Source

__all__ = ["ABSTRACTS", "NAMES", "PAIRS", "TEXTS", "WRITTEN"]

PACKAGE = replace(WORDNET, license="WordNet 3.1; templates Apache-2.0 (ours)")

PAIRS = {
    "everyday": "everyday",
    "news": "news",
    "service": "reviews, requests, complaints",
    "forum": "advice, opinions, facts, captions",
}
TEXTS = {
    "world": "news",
    "press": "news",
    "headlines": "headlines",
    "reports": "news",
    "mixed": "definitions, advice, opinions, captions",
    "talk": "forum posts, questions, answers",
    "senses": "definitions, captions",
}
SEARCHES = "abstract", "papers", "studies"  # abstracts with their titles and questions
MOST = 100_000  # all


def _ours(name: str, kind: str, *columns: str) -> Source:
    package = Package("ours", f"recipes/written/{name}.tsv", "1", "Apache-2.0 (ours)")
    return Source(f"ours-{name}", kind, package, read_columns(*columns), MOST, MOST, as_is=True)


WRITTEN = (
    Source(
        "written-questions",
        "questions by template",
        PACKAGE,
        read_generated(QUESTIONS, question_words, n=36_000),
        25_000,
        is_kept=True,
    ),
    Source(
        "written-opinions",
        "opinions by template",
        PACKAGE,
        read_generated(OPINIONS, opinion_words, n=45_000),
        25_000,
        is_kept=True,
    ),
    Source(
        "written-captions",
        "captions by template",
        PACKAGE,
        read_generated(CAPTIONS, caption_words, n=18_000),
        15_000,
        is_kept=True,
    ),
    *(_ours(name, kind, "english") for name, kind in PAIRS.items()),
    *(_ours(name, kind, "text") for name, kind in TEXTS.items()),
    *(_ours(name, "abstracts of reports", "title", "question", "other_question", "abstract") for name in SEARCHES),
)

NAMES = frozenset(source.name for source in WRITTEN if source.package.registry == "ours")  # not by template
ABSTRACTS = frozenset(f"ours-{name}" for name in SEARCHES)
