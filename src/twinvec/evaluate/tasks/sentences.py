"""Running text into sentences, by punctuation alone.

A sentence ends at ``.``, ``!``, ``?`` or ``...`` (with closing quotes or brackets) before white space and a capital,
digit or opening quote; not after common abbreviations and single initials. Ideographic full stops end one anywhere.
Headlines, lists and languages without capitals are beyond it.
"""

from __future__ import annotations

import re

__all__ = ["split_sentences"]

ENDS = re.compile(r"""[.!?\u2026]+["'\u201d\u2019)\]]*(?=\s+["'\u201c\u2018(\[]?[^\W_a-z])|[\u3002\uff01\uff1f]""")
ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|cf|ca|No|Nos|vol|pp|p|Fig|Figs|Eq|al|approx|Inc|Ltd|Co|Gen|Col|Capt|Lt)"
    r"|\b[A-Z]|\b[a-z]\.[a-z])\.$"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph, white space folded.

    >>> split_sentences("Dr. A. Smith came at 5.30 p.m. on Monday. He left! Why?")
    ['Dr. A. Smith came at 5.30 p.m. on Monday.', 'He left!', 'Why?']
    """
    folded = " ".join(text.split())
    sentences, start = [], 0
    for match in ENDS.finditer(folded):
        if not ABBREVIATION.search(folded, start, match.end()):
            sentences.append(folded[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in [*sentences, folded[start:].strip()] if sentence]
