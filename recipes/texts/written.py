"""Generated sources: questions, opinions and captions, from templates and WordNet's words."""

from __future__ import annotations

from dataclasses import replace

from texts.caption_templates import CAPTIONS, caption_words
from texts.general import WORDNET
from texts.generated import read_generated
from texts.opinion_templates import OPINIONS, opinion_words
from texts.question_templates import QUESTIONS, question_words
from texts.source import Source

__all__ = ["WRITTEN"]

PACKAGE = replace(WORDNET, license="WordNet 3.1; templates Apache-2.0 (ours)")

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
)
