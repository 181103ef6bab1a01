"""All sources, in the order in which they are read: of two that have the same text, the first one keeps it."""

from __future__ import annotations

from texts.general import GENERAL
from texts.libraries import LIBRARIES
from texts.questions import QUESTIONS
from texts.source import Source
from texts.technical import TECHNICAL
from texts.written import WRITTEN

__all__ = ["SOURCES"]

SOURCES: tuple[Source, ...] = (*QUESTIONS, *GENERAL, *TECHNICAL, *LIBRARIES, *WRITTEN)
