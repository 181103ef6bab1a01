"""All sources, in reading order. A text of two sources belongs to the first one."""

from __future__ import annotations

from texts.general import GENERAL
from texts.libraries import LIBRARIES
from texts.press import PRESS
from texts.questions import QUESTIONS
from texts.source import Source
from texts.technical import TECHNICAL
from texts.written import WRITTEN

__all__ = ["SOURCES"]

SOURCES: tuple[Source, ...] = (*QUESTIONS, *GENERAL, *TECHNICAL, *PRESS, *LIBRARIES, *WRITTEN)
