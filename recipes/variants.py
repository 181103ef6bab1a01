"""Write texts with variants of each: words left out, words replaced, or only a part, for the second and third stage.

    python recipes/gather.py recipes/texts.tsv.gz --data $TWINVEC_DATA --most 400000 --most-long 60000
    python recipes/variants.py recipes/texts.tsv.gz

Writes to the same folder: variants.tsv.gz, short texts, each with three variants; passages.tsv.gz, long texts, each
with a passage and a few words like a query; searches.tsv.gz, the same of the abstracts written for this project, with
their titles and questions. How similar a text and its variant are is for the teachers to say. The digest of a text
decides whether it is taken, and what its variants are.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from split import LONG_WORDS, number_of
from texts.output import Rows, derive
from texts.written import ABSTRACTS, NAMES
from twinvec.data.sentences import split_sentences

MOST_SHORT = {
    "snli": 3_000,
    "mnli": 4_000,
    "wordnet-examples": 1_500,
    "wikipedia": 1_000,
    "randfacts": 1_000,
    "registries": 500,
    "sotu": 500,
    "chat-questions": 500,
    "learners-questions": 500,
    "conventions": 500,
    "current-events": 500,
    **dict.fromkeys(NAMES, 300),
    **dict.fromkeys(ABSTRACTS, 0),
}
MOST_LONG = dict.fromkeys(ABSTRACTS, 0)  # all are in searches.tsv.gz
MOST_OTHERS, MOST_LONG_OTHERS = 60, 350  # of each other source
WORDS = 6, 30
DROPPED, PART = 0.2, (0.45, 0.8)
LEAST_SEEN, MOST_CONTEXTS = 2, 400
PASSAGE_SENTENCES, QUERY_WORDS = (2, 3), (5, 12)
Contexts = dict[tuple[str, str], list[str]]


def read_contexts(texts: Iterable[str]) -> Contexts:
    """The words that stand between two given words, those that stand there at least twice, most frequent first."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for text in texts:
        words = ["", *text.split(), ""]
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            counts[before.lower(), after.lower()][word] += 1
    return {
        place: [word for word, n in found.most_common(MOST_CONTEXTS) if n >= LEAST_SEEN]
        for place, found in counts.items()
        if len(found) > 1
    }


def without_words(words: Sequence[str], chance: random.Random) -> list[str]:
    """The words without some of them."""
    kept = [word for word in words if chance.random() >= DROPPED]
    return kept if 2 < len(kept) < len(words) else [*words[:1], *words[2:]]


def with_others(words: Sequence[str], chance: random.Random, contexts: Contexts) -> list[str]:
    """The words with one to three replaced by others that stand between the same two words elsewhere."""
    changed, left = list(words), chance.randint(1, 3)
    places = list(range(len(words)))
    chance.shuffle(places)
    for place in places:
        before = changed[place - 1].lower() if place else ""
        after = changed[place + 1].lower() if place + 1 < len(words) else ""
        others = [word for word in contexts.get((before, after), []) if word.lower() != changed[place].lower()]
        if others and left:
            changed[place] = chance.choice(others)
            left -= 1
    return changed


def part_of(words: Sequence[str], chance: random.Random) -> list[str]:
    """Some consecutive words."""
    n = max(3, round(chance.uniform(*PART) * len(words)))
    start = chance.randint(0, len(words) - n)
    return list(words[start : start + n])


def variants(text: str, contexts: Contexts) -> list[str]:
    """The text, and those of its variants that differ from it."""
    words, chance = text.split(), random.Random(number_of(text))
    found = [with_others(words, chance, contexts), without_words(words, chance), part_of(words, chance)]
    return list(dict.fromkeys([text, *(" ".join(each) for each in found)]))


def passages(text: str) -> list[str]:
    """A long text, some of its sentences, and a few words of one of them."""
    chance, sentences = random.Random(number_of(text)), split_sentences(text)
    found = [text]
    n = chance.choice(PASSAGE_SENTENCES)
    if len(sentences) > n:
        start = chance.randint(0, len(sentences) - n)
        found.append(" ".join(sentences[start : start + n]))
    words = chance.choice(sentences).lower().rstrip(".?!").split()
    n = min(chance.randint(*QUERY_WORDS), len(words))
    if n >= QUERY_WORDS[0]:
        start = chance.randint(0, len(words) - n)
        found.append(" ".join(words[start : start + n]))
    return found


def choose(
    rows: Iterable[tuple[str, str]], is_wanted: Callable[[int], bool], caps: dict[str, int], most: int
) -> list[str]:
    """The texts with a wanted number of words, at most so many of each source."""
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    for source, text in rows:
        if is_wanted(len(text.split())):
            by_source[source].append(text)
    return [text for name, texts in by_source.items() for text in sorted(texts, key=number_of)[: caps.get(name, most)]]


def files(rows: Rows) -> dict[str, dict[str, None]]:
    """The texts of each file, each once."""
    contexts = read_contexts(text for _, text in rows)
    short = choose(rows, lambda n: WORDS[0] <= n <= WORDS[1], MOST_SHORT, MOST_OTHERS)
    long = choose(rows, lambda n: n >= LONG_WORDS, MOST_LONG, MOST_LONG_OTHERS)
    ours = [text for source, text in rows if source in ABSTRACTS]
    return {
        "variants": dict.fromkeys(each for text in short for each in variants(text, contexts)),
        "passages": dict.fromkeys(each for text in long for each in passages(text)),
        "searches": dict.fromkeys(
            each for text in ours for each in (passages(text) if len(text.split()) >= LONG_WORDS else [text])
        ),
    }


if __name__ == "__main__":
    derive(__doc__, files)
