"""Writing systems: which of them a tokenizer has words for, and how much of a text it can read.

A tokenizer rarely fails on a script it does not know. BERT's English vocabulary, for example, has the single letters of
many scripts, so every Korean text becomes a row of letters without meaning, and none of them is the unknown token. So
the vocabulary is what counts: a script is covered if enough pieces hold two or more of its letters. A Hangul syllable
and a Chinese character count as such a piece, because they carry meaning alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["Scripts", "covered_scripts", "script_of"]

LATIN = "Latin"
# Blocks of Unicode, in hexadecimal. Latin is never reported as unknown: most models know it.
BLOCKS: dict[str, str] = {
    LATIN: "41-5a 61-7a c0-24f 1e00-1eff",
    "Greek": "370-3ff 1f00-1fff",
    "Cyrillic": "400-52f 1c80-1c8f 2de0-2dff a640-a69f",
    "Armenian": "530-58f",
    "Hebrew": "590-5ff fb1d-fb4f",
    "Arabic": "600-6ff 750-77f 870-8ff fb50-fdff fe70-fefc",
    "Devanagari": "900-97f a8e0-a8ff",
    "Bengali": "980-9ff",
    "Gurmukhi": "a00-a7f",
    "Gujarati": "a80-aff",
    "Odia": "b00-b7f",
    "Tamil": "b80-bff",
    "Telugu": "c00-c7f",
    "Kannada": "c80-cff",
    "Malayalam": "d00-d7f",
    "Sinhala": "d80-dff",
    "Thai": "e00-e7f",
    "Lao": "e80-eff",
    "Tibetan": "f00-fff",
    "Burmese": "1000-109f aa60-aa7f",
    "Georgian": "10a0-10ff 1c90-1cbf 2d00-2d2f",
    "Hangul": "1100-11ff 3130-318f a960-a97f ac00-d7ff ffa0-ffdc",
    "Ethiopic": "1200-139f",
    "Khmer": "1780-17ff",
    "Mongolian": "1800-18af",
    "Kana": "3040-30ff 31f0-31ff ff66-ff9f",
    "Han": "2e80-2fdf 3005-3007 3400-4dbf 4e00-9fff f900-faff 20000-323af",
}
MEANINGFUL = re.compile("[\uac00-\ud7a3\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")  # characters that carry meaning alone
MARKS, END_MARK = "#▁", "</w>"  # of pieces inside a word, or at its start or end

# A script is covered from this number of pieces on, or from this share of a smaller vocabulary. English BERT has up to
# 8 pieces in any other script, and 488 Chinese characters; RoBERTa has 22 pieces of Kana.
LEAST_PIECES = {"Han": 1000}, 200
LEAST_SHARES = {"Han": 0.025}, 0.01
# A text is unknown from this share of unreadable letters on, and from two of them: no alarm at a Greek formula.
UNKNOWN_SHARE = 0.25
LEAST_LETTERS = 2


def _spans() -> Iterator[tuple[int, int, str]]:
    for name, blocks in BLOCKS.items():
        for block in blocks.split():
            first, last = block.split("-")
            yield int(first, 16), int(last, 16), name


SPANS = sorted(_spans())
FIRSTS = [first for first, _, _ in SPANS]


@lru_cache(maxsize=1 << 14)
def script_of(character: str) -> str | None:
    """The script of a letter; None for anything else, and for rare scripts.

    >>> script_of("a"), script_of("한"), script_of("7"), script_of("🙂")
    ('Latin', 'Hangul', None, None)
    """
    if not character.isalpha():
        return None
    index = bisect_right(FIRSTS, ord(character)) - 1
    return SPANS[index][2] if index >= 0 and ord(character) <= SPANS[index][1] else None


class TextCoverage(NamedTuple):
    """The share of a text's letters that the model has words for, and the main script of the others."""

    share: float
    script: str | None

    @property
    def is_unknown(self) -> bool:
        """Whether so much cannot be read that the vector means little."""
        return self.script is not None


KNOWN = TextCoverage(1.0, None)


@dataclass(frozen=True)
class Scripts:
    """The scripts of a tokenizer: the number of pieces in each, those it covers, and a pattern of all others."""

    n_pieces: Mapping[str, int]
    covered: tuple[str, ...]
    unknown: re.Pattern[str] | None

    def coverage(self, text: str) -> TextCoverage:
        """How much of a text the tokenizer has words for."""
        if text.isascii() or self.unknown is None or not self.unknown.search(text):
            return KNOWN
        found = [character for character in self.unknown.findall(text) if character.isalpha()]
        share = len(found) / max(sum(map(str.isalpha, text)), 1)
        if len(found) < LEAST_LETTERS or share < UNKNOWN_SHARE:
            return TextCoverage(1 - share, None)
        return TextCoverage(1 - share, Counter(map(script_of, found)).most_common(1)[0][0])


def covered_scripts(fast: Any) -> Scripts:  # noqa: ANN401 - a compiled type without stubs
    """The scripts of a tokenizer, by its vocabulary; normalization and special tokens do not matter."""
    vocabulary = list(fast.get_vocab(with_added_tokens=False))
    pieces = _from_bytes(vocabulary) if _is_byte_level(fast) else vocabulary
    counts: Counter[str] = Counter(filter(None, map(_piece_script, pieces)))
    covered = tuple(name for name in BLOCKS if counts[name] >= _least(name, len(vocabulary)))
    others = [f"{chr(first)}-{chr(last)}" for first, last, name in SPANS if name not in (LATIN, *covered)]
    return Scripts(counts, covered, re.compile(f"[{''.join(others)}]") if others else None)


def _least(script: str, n_pieces: int) -> float:
    own, usual = LEAST_PIECES
    shares, usual_share = LEAST_SHARES
    return max(1.0, min(own.get(script, usual), shares.get(script, usual_share) * n_pieces))


def _piece_script(piece: str) -> str | None:
    """The script of a piece that carries meaning: of two letters or more, or of one meaningful character.

    >>> _piece_script("##ing"), _piece_script("▁한국"), _piece_script("한"), _piece_script("ж"), _piece_script("##1")
    ('Latin', 'Hangul', 'Hangul', None, None)
    """
    piece = piece.removesuffix(END_MARK).strip(MARKS)
    if piece.isascii():
        return LATIN if len(piece) > 1 and piece.isalpha() else None
    scripts = [script for script in map(script_of, piece) if script]
    if len(set(scripts)) != 1 or (len(scripts) < 2 and not MEANINGFUL.search(piece)):
        return None
    return scripts[0]


def _is_byte_level(fast: Any) -> bool:  # noqa: ANN401
    return "ByteLevel" in repr(fast.pre_tokenizer) or "ByteLevel" in repr(fast.decoder)


def _from_bytes(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces of a byte-level vocabulary as text, where each character stands for one byte; parts are dropped.

    >>> list(_from_bytes(["Ġthe", "íķľ", "íķ"]))
    [' the', '한', '']
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
    for piece in pieces:
        if all(character in table for character in piece):
            yield bytes(table[character] for character in piece).decode("utf-8", "ignore")
