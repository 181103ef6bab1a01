"""The frame of every HTML page: one file, no script, no font, no request."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from twinvec.report.style import STYLE
from twinvec.report.svg import element

__all__ = ["document"]


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page; ``parts`` are markup."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', escape(title))}<style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{element("main", *parts)}</body></html>\n'
