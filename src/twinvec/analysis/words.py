"""Words ranked by how much they change from layer to layer (Wang and Kuo, 2020, Table I)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twinvec.data.sentences import FUNCTION_WORDS
from twinvec.encoder import Encoder
from twinvec.metrics import ranks
from twinvec.types import Array

__all__ = ["FUNCTION_WORDS", "Extremes", "MovingWord", "WordGroups", "extremes", "group_words", "words_of"]


class MovingWord(NamedTuple):
    """A word, how often it occurs, and the mean variance of the cosines between its adjacent layers."""

    word: str
    n_seen: int
    variance: float
    is_function: bool


class Extremes(NamedTuple):
    """The words with the lowest, middle and highest variance, each by increasing variance."""

    lowest: list[MovingWord]
    middle: list[MovingWord]
    highest: list[MovingWord]


class WordGroup(NamedTuple):
    """Function words or content words: the number of distinct words and of occurrences.

    ``variance`` is the mean over all occurrences, so frequent words dominate; ``variance_of_words`` is the mean over
    distinct words.
    """

    n_words: int
    n_seen: int
    variance: float
    variance_of_words: float


class WordGroups(NamedTuple):
    """Both groups, and the probability that a random content word varies more than a random function word."""

    function: WordGroup
    content: WordGroup
    content_moves_more: float


def extremes(words: Sequence[MovingWord], n: int) -> Extremes:
    """``n`` words each with the lowest, middle and highest variance; fewer if there are less than ``3 * n`` words.

    >>> found = extremes([MovingWord(w, 1, i, False) for i, w in enumerate("abcdefg")], 2)
    >>> ["".join(each.word for each in part) for part in found]
    ['ab', 'cd', 'fg']
    """
    n = min(n, len(words) // 3)
    start = (len(words) - n) // 2
    return Extremes(list(words[:n]), list(words[start : start + n]), list(words[len(words) - n :]))


def group_words(words: Sequence[MovingWord]) -> WordGroups | None:
    """Compare function words with content words; None if one of the groups is empty."""
    variances = np.array([each.variance for each in words])
    counts = np.array([each.n_seen for each in words])
    is_function = np.array([each.is_function for each in words], dtype=bool)
    n_function, n_content = int(is_function.sum()), int((~is_function).sum())
    if not (n_function and n_content):
        return None
    groups = [_group(variances[part], counts[part]) for part in (is_function, ~is_function)]
    # Mann-Whitney U as a share; ties count half.
    above = ranks(variances)[~is_function].sum() - n_content * (n_content + 1) / 2
    return WordGroups(groups[0], groups[1], float(above / (n_function * n_content)))


def _group(variances: Array, counts: Array) -> WordGroup:
    average = float(np.average(variances, weights=counts))
    return WordGroup(len(counts), int(counts.sum()), average, float(variances.mean()))


def words_of(encoder: Encoder, texts: Sequence[str]) -> list[list[str]]:
    """The word of every token of each text, special tokens included; empty if the token is not a whole word.

    Words are lower-case and contain a letter.
    """
    tokenizer = encoder.tokenizer
    rows = []
    for words in tokenizer.words(texts):
        kept = words if encoder.max_tokens is None else tokenizer.cut(words, encoder.max_tokens - tokenizer.n_special)
        shown = [word if any(map(str.isalpha, word)) else "" for word in map(str.lower, kept)]
        rows.append([*[""] * len(tokenizer.prefix), *shown, *[""] * len(tokenizer.suffix)])
    return rows
