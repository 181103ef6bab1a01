"""Generate sentences from templates and word lists; the same seed gives the same sentences.

``[one|two|]`` is a choice of wordings; the last one here is empty. ``{slot}`` is a word of the list of that name,
``{slot2}`` is another word of the same list, and the same slot twice is the same word. ``{form:slot}`` inflects it.
`` / `` separates sentences that get the same words and become separate texts. If the words of a list have two parts,
such as a verb and its object, ``{deed.0}`` and ``{a:deed.1}`` are the parts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from texts import grammar
from texts.lexicon import Lexicon, lexicon_of

__all__ = ["FORMS", "Words", "fill", "generate", "listed", "read_generated", "slots_of"]

Words = Mapping[str, Sequence[str | tuple[str, ...]]]

CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(?:(\w+):)?(([a-z_]+)\d*)(?:\.(\d))?\}")
SPACES = re.compile(r" {2,}| (?=[.,;:?!])")
FORMS: Mapping[str, Callable[[str], str]] = {
    "a": grammar.article,
    "s": grammar.plural,
    "does": grammar.third_person,
    "doing": grammar.gerund,
    "did": grammar.past,
    "done": grammar.participle,
    "more": grammar.comparative,
    "A": lambda phrase: _capitalized(grammar.article(phrase)),
    "S": lambda phrase: _capitalized(grammar.plural(phrase)),
    "C": lambda phrase: _capitalized(phrase),
}


def _space(match: re.Match[str]) -> str:
    return " " if len(match[0]) > 1 else ""


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(words: str) -> list[str]:
    """The words between commas.

    >>> listed("one, two\\n  three, four")
    ['one', 'two three', 'four']
    """
    return [" ".join(word.split()) for word in words.split(",")]


def slots_of(template: str) -> set[str]:
    """The word lists that a template uses.

    >>> sorted(slots_of("[A|The] {color} {animal} and {a:animal2}"))
    ['animal', 'color']
    """
    return {match[3] for match in SLOT.finditer(template)}


def fill(template: str, words: Words, chance: random.Random) -> list[str]:
    """The sentences of a template, with random words.

    >>> fill("{A:pet} runs. / No {pet} {runs}.", {"pet": ["cat"], "runs": ["runs"]}, random.Random(0))
    ['A cat runs.', 'No cat runs.']
    """
    drawn: dict[str, tuple[str, ...]] = {}

    def word(match: re.Match[str]) -> str:
        form, name, slot, part = match.groups()
        if name not in drawn:
            drawn[name] = _draw(words[slot], set(drawn.values()), chance)
        text = SLOT.sub(word, drawn[name][int(part or 0)])  # a word may contain a slot
        return FORMS[form](text) if form else text

    chosen = CHOICE.sub(lambda match: chance.choice(match[1].split("|")), template)
    filled = SLOT.sub(word, chosen)
    return [_capitalized(SPACES.sub(_space, text).strip()) for text in filled.split(" / ")]


def _draw(
    words: Sequence[str | tuple[str, ...]], taken: set[tuple[str, ...]], chance: random.Random
) -> tuple[str, ...]:
    """A word that is not yet in this sentence, if a few tries find one."""
    for _ in range(20):
        word = chance.choice(words)
        parts = (word,) if isinstance(word, str) else word
        if parts not in taken:
            break
    return parts


def generate(templates: Sequence[str], words: Words, *, n: int, seed: str) -> Iterator[str]:
    """About ``n`` distinct texts from all templates in turn; fewer if there are not enough words."""
    chance = random.Random(seed)
    seen: set[str] = set()
    for _ in range(-(-n // len(templates))):
        for template in templates:
            for text in fill(template, words, chance):
                if text not in seen:
                    seen.add(text)
                    yield text


def read_generated(
    templates: Sequence[str], words_of: Callable[[Lexicon], Words], *, n: int
) -> Callable[[Path], Iterator[str]]:
    """A reader of WordNet's package that yields about ``n`` sentences."""

    def texts(archive: Path) -> Iterator[str]:
        return generate(templates, words_of(lexicon_of(archive)), n=n, seed="twinvec")

    return texts
