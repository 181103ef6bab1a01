"""Word lists from WordNet: the kinds of a thing, the people and places of a class, similar adjectives.

Only words in their first sense are included, so that "kinds of dog" contains no people. Rare but plain English words
(``zither``) are included; Latin names and phrases of more than three words are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from texts.archives import members

__all__ = ["Lexicon", "Synset", "lexicon_of", "parse_synset"]

PART = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # 5: satellite adjectives
PLAIN = re.compile(r"[a-z]+(?:[ -][a-z]+){0,2}")
NAME = re.compile(r"[A-Z][a-z']+(?: (?:[A-Z][a-z']+|of|the|de|von|van|da)){0,3}")
ACRONYM = re.compile(r"[A-Z]{3,6}")
TITLE = re.compile(r"(?:President|Sir|Dame|King|Queen|Saint|St|Lord|Baron|First|Father|The) ")
MARKER = re.compile(r"\((?:a|p|ip)\)$")


@dataclass(frozen=True, slots=True)
class Synset:
    """A sense: its words, and related senses by symbol (``@`` kind of, ``@i`` instance of, ``&`` similar)."""

    key: str  # part of speech and offset, such as n02086723
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str], ...]


def parse_synset(line: str) -> Synset:
    """One line of a data file.

    >>> parse_synset("00000010 05 n 02 dog 0 Canis_familiaris 0 001 @ 00000007 n 0000 | a pet")
    Synset(key='n00000010', words=('dog', 'Canis familiaris'), pointers=(('@', 'n00000007'),))
    """
    offset, _, part, n_words, *rest = line.partition(" | ")[0].split()
    n = int(n_words, 16)
    words = tuple(MARKER.sub("", word).replace("_", " ") for word in rest[: 2 * n : 2])
    fields = rest[2 * n + 1 :]
    pointers = tuple((fields[4 * i], fields[4 * i + 2] + fields[4 * i + 1]) for i in range(int(rest[2 * n])))
    return Synset(part.replace("s", "a") + offset, words, pointers)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The synsets, in the order of their files, and the rank of the senses of each word."""

    synsets: Mapping[str, Synset]
    below: Mapping[str, tuple[str, ...]]  # key -> its direct kinds and instances
    first: Mapping[tuple[str, str], str]  # part of speech and lower-case word -> its first sense
    counts: Mapping[tuple[str, str], int]  # the same -> its frequency in tagged text

    def kinds(self, *roots: str, least: int = 0) -> list[str]:
        """The nouns that are kinds of a root, at any depth, with at least this frequency; sorted, without the root."""
        words = {
            word
            for synset in self._under(roots)
            for word in synset.words[:2]
            if PLAIN.fullmatch(word) and self._is_first("n", word, synset) and self.counts["n", word] >= least
        }
        return sorted(words - set(roots))

    def names(self, *roots: str, n_words: int = 0) -> list[str]:
        """The first name of each person, place or event that is an instance of a root or of one of its kinds.

        ``n_words``: the first name with this many words; instances without one are left out.
        """
        found = set()
        for synset in self._under(roots):
            if any(sign == "@i" for sign, _ in synset.pointers):
                names = [name for name in synset.words if NAME.fullmatch(name) and not TITLE.match(name)]
                found.update([name for name in names if n_words in (0, len(name.split()))][:1])
        return sorted(found)

    def near(self, *adjectives: str, least: int = 0) -> list[str]:
        """The adjectives, and those similar to them in their first sense, with at least this frequency."""
        found = set(adjectives)
        for adjective in adjectives:
            synset = self.synsets[self.first["a", adjective]]
            for near in (self.synsets[key] for sign, key in synset.pointers if sign == "&"):
                found.update(
                    word
                    for word in near.words
                    if PLAIN.fullmatch(word) and self._is_first("a", word, near) and self.counts["a", word] >= least
                )
        return sorted(found)

    def acronyms(self) -> list[str]:
        """Acronyms: nouns in capitals that abbreviate a longer one."""
        return sorted(
            {
                word
                for synset in self.synsets.values()
                for word in synset.words
                if ACRONYM.fullmatch(word) and any(_stands_for(word, other) for other in synset.words)
            }
        )

    def _under(self, roots: Iterable[str]) -> Iterator[Synset]:
        waiting = [self.first["n", root] for root in roots]
        seen = set(waiting)
        while waiting:
            key = waiting.pop()
            yield self.synsets[key]
            new = [each for each in self.below.get(key, ()) if each not in seen]
            seen.update(new)
            waiting += new

    def _is_first(self, part: str, word: str, synset: Synset) -> bool:
        return self.first.get((part, word)) == synset.key


def _stands_for(acronym: str, phrase: str) -> bool:
    """Whether the initials of a phrase are the letters of the acronym.

    >>> _stands_for("WHO", "World Health Organization")
    True
    """
    return acronym == "".join(word[0] for word in phrase.split() if word[0].isupper()) and " " in phrase


@lru_cache(maxsize=1)
def lexicon_of(archive: Path) -> Lexicon:
    """The lexicon in a package that ships WordNet's files."""
    synsets: dict[str, Synset] = {}
    below: dict[str, list[str]] = {}
    first: dict[tuple[str, str], str] = {}
    counts: dict[tuple[str, str], int] = {}
    for name, content in members(archive, r"dict/(?:data\.(?:adj|noun)|index\.sense)$"):
        lines = content.decode("utf-8").splitlines()
        if name.endswith("index.sense"):
            _read_senses(lines, first, counts)
        else:
            for synset in (parse_synset(line) for line in lines if line and line[0] != " "):
                synsets[synset.key] = synset
                for sign, above in synset.pointers:
                    if sign in ("@", "@i"):
                        below.setdefault(above, []).append(synset.key)
    return Lexicon(synsets, {key: tuple(keys) for key, keys in below.items()}, first, counts)


def _read_senses(lines: Iterable[str], first: dict[tuple[str, str], str], counts: dict[tuple[str, str], int]) -> None:
    """Add the lines of index.sense: ``word%1:05:00:: offset rank count``."""
    for line in lines:
        sense, offset, rank, count = line.split()
        word, _, place = sense.partition("%")
        part = PART[place[0]]
        if rank == "1":
            first[part, word.replace("_", " ")] = part + offset
            counts[part, word.replace("_", " ")] = int(count)
