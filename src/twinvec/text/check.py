"""Refuse what is not text, at the border, with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterable

from twinvec.errors import InputError, shown

__all__ = ["check_text", "check_texts"]


def check_text(text: object, where: str) -> str:
    """Return ``text`` if it can be tokenized.

    >>> check_text("a", "texts[0]")
    'a'
    """
    if not isinstance(text, str):
        hint = "Decode bytes first: data.decode('utf-8')." if isinstance(text, bytes) else "Every text must be a str."
        raise InputError(f"{where} is {shown(text)}, of type {type(text).__name__}, not a text.", hint=hint)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where} holds a lone surrogate ({text[error.start]!a}) at character {error.start}, which is no text.",
            hint="Read the file as UTF-8, or drop such characters: text.encode('utf-8', 'replace').decode().",
        ) from error
    return text


def check_texts(texts: Iterable[str], first: int = 0) -> list[str]:
    """Return the texts as a list, each one checked. Messages count them from ``first``."""
    if isinstance(texts, (bytes, dict)) or not isinstance(texts, Iterable):
        raise InputError(
            f"Expected a text or a list of texts, got {type(texts).__name__}.",
            hint="Give a str or a list of str.",
        )
    # ASCII needs no further look; for most texts that is all the check costs
    return [
        text if isinstance(text, str) and text.isascii() else check_text(text, f"texts[{i}]")
        for i, text in enumerate(texts, first)
    ]
