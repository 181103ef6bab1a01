"""Key words of clusters: class-based tf-idf. Grootendorst (2022), *BERTopic*, section 3.3.

A word weighs in a cluster its share of the cluster's words, times ``log(1 + A / f)``: ``A`` is the mean number of
words of a cluster and ``f`` how often the word occurs in all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log

__all__ = ["key_words", "words_of"]

WORD = re.compile(r"[^\W\d_][^\W_]*(?:['\u2019-][^\W_]+)*")  # begins with a letter; digits may follow
# Words of grammar, which every English text has; they would stand first in small clusters.
GRAMMAR = """
    a about after again all also am an and any are aren't as at be because been before being but by can can't cannot
    could did didn't do does doesn't doing don't down each few for from further get got had has have having he her here
    hers him his how i i'm if in into is isn't it it's its itself just let like may me might more most much must my no
    nor not now of off on once one only or other our out over own per same shall she should so some such than that the
    their them then there these they this those through to too under until up upon us use used using very via was we
    were what when where whether which while who whom whose why will with without would yes you your yours
"""
STOP_WORDS = frozenset(GRAMMAR.split())


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without those of grammar.

    >>> words_of("It's the B-tree of 3 UTF-8 keys.")
    ['b-tree', 'utf-8', 'keys']
    """
    return [word for word in WORD.findall(text.lower()) if word not in STOP_WORDS and len(word) > 1]


def key_words(texts: Sequence[str], labels: Sequence[int], n_clusters: int, *, n: int = 5) -> list[list[str]]:
    """The ``n`` words that tell each cluster from the others, heaviest first, then by the alphabet.

    ``labels``, one for each text, are clusters from 0 on; texts of -1 belong to none, and do not count.

    >>> key_words(["red cat", "old cat", "red car"], [0, 0, 1], 2, n=1)
    [['cat'], ['car']]
    """
    counts: list[Counter[str]] = [Counter() for _ in range(n_clusters)]
    for text, label in zip(texts, labels, strict=True):
        if label >= 0:
            counts[label].update(words_of(text))
    totals = [count.total() for count in counts]
    everywhere: Counter[str] = Counter()
    for count in counts:
        everywhere.update(count)
    mean = sum(totals) / max(n_clusters, 1)
    return [_heaviest(count, total, everywhere, mean, n) for count, total in zip(counts, totals, strict=True)]


def _heaviest(count: Counter[str], total: int, everywhere: Counter[str], mean: float, n: int) -> list[str]:
    weights = {word: often / total * log(1 + mean / everywhere[word]) for word, often in count.items()}
    return sorted(weights, key=lambda word: (-weights[word], word))[:n]
