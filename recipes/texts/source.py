"""A source of texts: a pinned package, and which of its texts to take."""

from __future__ import annotations

from dataclasses import dataclass

from texts.cleaning import MIN_WORDS
from texts.readers import Reader

__all__ = ["Package", "Source"]


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry in one version, or a table of the data folder (``data``) or of ours (``ours``).

    ``license`` is that of the package; if the texts have their own license, it follows after a semicolon.
    """

    registry: str
    name: str
    version: str
    license: str


@dataclass(frozen=True, slots=True)
class Source:
    """Texts of one kind from one package."""

    name: str
    kind: str
    package: Package
    read: Reader
    cap: int  # short texts at most
    cap_long: int = 0  # texts of 60 or more words at most
    min_words: int = MIN_WORDS
    is_kept: bool = False  # not reduced when the collection is thinned
    as_is: bool = False  # written for this project: taken whole, whether or not it is prose
