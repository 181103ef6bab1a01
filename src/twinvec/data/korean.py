"""Korean words without their particles, by simple rules.

Korean joins particles (josa) to nouns: 비밀번호 is a password, 비밀번호를 the same as an object, 비밀번호가 as a
subject. Which form of a particle fits depends on the last syllable of the noun: whether it ends in a consonant. A
syllable at the end of a word may also belong to it (고양이, a cat, is not 고양 + 이), so a particle that could do so is
removed only if the texts show the noun without it, or with another one.

With the package kiwipiepy (extra: korean), its analysis is used instead of these rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal

from twinvec.extras import require

__all__ = ["HANGUL", "KOREAN_FUNCTION_WORDS", "korean_nouns", "without_particles"]

HANGUL = re.compile("[\uac00-\ud7a3]")
HANGUL_WORD = re.compile("[\uac00-\ud7a3]{2,}")
MIXED_WORD = re.compile("(.*[A-Za-z0-9])([\uac00-\ud7a3]+)")  # such as API를
FIRST_SYLLABLE, N_FINALS, FINAL_L = 0xAC00, 28, 8
Final = Literal["any", "consonant", "vowel", "vowel or l"]

# The particles, by the ending of the nouns they follow.
PARTICLES: dict[Final, str] = {
    "any": "에 에는 에도 에서 에서는 에서도 에게 에게는 에게서 의 도 만 까지 까지는 부터 처럼 보다 마다 조차 한테 하고 "
    "께 께서 들 들이 들을 들은 들의",
    "consonant": "은 이 을 과 으로 으로는 으로도 으로서 으로써 이나 이랑 이라도 이야",
    "vowel": "는 가 를 와 랑 라도 야",
    "vowel or l": "로 로는 로도 로서 로써",
}
ENDINGS = sorted(
    ((part, final) for final, parts in PARTICLES.items() for part in parts.split()), key=lambda each: -len(each[0])
)
SUFFIXES = frozenset(part for part, _ in ENDINGS)
# Hardly any noun ends in one of these, so they are removed without further evidence.
SURE = frozenset(
    ["를", "에서", "에서는", "에서도", "에게", "에게는", "에게서", "으로", "으로는", "으로도", "까지", "부터"]
)
SHORTEST_STEM = 2  # syllables

KOREAN_FUNCTION_WORDS = frozenset(
    " ".join(
        (
            "그리고 그러나 그런데 그래서 그러면 하지만 아니면 또는 또한 이것",
            "그것 저것 이거 그거 저거 여기 거기 저기 우리 저희 당신 나는 저는",
            "누구 무엇 언제 어디 어떻게 어떤 어느 얼마나 무슨 하는 하고 하면",
            "해서 하다 한다 했다 합니다 있는 있다 있고 있어 있어요 있습니다",
            "있나요 없는 없다 없어 없어요 없습니다 되는 된다 되다 됩니다",
            "되나요 뭔가요 뭐가 뭐야 뭐예요 인가요 대한 대해 위해 위한 통해",
            "따라 때문 때문에 중에 중에서 같은 같이 이런 그런 저런 매우 아주",
            "정말 너무 다시 모두 모든 가장 많이 조금 아직 이미",
        )
    ).split()
)


def without_particles(words: Collection[str]) -> Callable[[str], str]:
    """A function that removes the particle of a Korean word; ``words`` are all words of the texts, as evidence.

    >>> stem = without_particles(["비밀번호", "비밀번호를", "정책이", "정책은", "고양이", "고양이는", "전문가"])
    >>> [stem(word) for word in ("비밀번호를", "비밀번호가", "정책이", "고양이는", "고양이", "전문가", "cats")]
    ['비밀번호', '비밀번호', '정책', '고양이', '고양이', '전문가', 'cats']
    """
    known = words if isinstance(words, (set, frozenset, dict)) else frozenset(words)

    @lru_cache(maxsize=1 << 16)
    def stem(word: str) -> str:
        if (mixed := MIXED_WORD.fullmatch(word)) and mixed[2] in SUFFIXES:
            return mixed[1]
        if not HANGUL_WORD.fullmatch(word):
            return word
        return next((noun for noun, particle in _splits(word) if _is_noun(noun, particle, known)), word)

    return stem


def _splits(word: str) -> Iterator[tuple[str, str]]:
    """All ways to split a word into a noun and a fitting particle, the longest particle first."""
    for particle, final in ENDINGS:
        noun = word[: -len(particle)]
        if len(noun) >= SHORTEST_STEM and word.endswith(particle) and _fits(noun, final):
            yield noun, particle


def _fits(noun: str, final: Final) -> bool:
    ending = (ord(noun[-1]) - FIRST_SYLLABLE) % N_FINALS  # 0: a vowel
    return {"any": True, "consonant": ending > 0, "vowel": ending == 0, "vowel or l": ending in (0, FINAL_L)}[final]


def _is_noun(noun: str, particle: str, known: Collection[str]) -> bool:
    others = (noun + other for other, final in ENDINGS if other != particle and _fits(noun, final))
    return particle in SURE or noun in known or any(other in known for other in others)


def korean_nouns() -> Callable[[str], list[str]] | None:
    """A function that lists the nouns of a Korean text, from the package kiwipiepy; None if it is not installed."""
    return _nouns_of if find_spec("kiwipiepy") else None


@lru_cache(maxsize=1)
def _kiwi() -> Any:  # noqa: ANN401 - a compiled type without stubs
    return require("kiwipiepy", extra="korean", feature="Korean nouns").Kiwi()


def _nouns_of(text: str) -> list[str]:
    """Neighboring nouns without a space between them are joined: 비밀 + 번호 is one word."""
    nouns: list[str] = []
    end = -1
    for token in _kiwi().tokenize(text):
        if token.tag in ("NNG", "NNP", "XPN", "XSN"):
            if token.start == end:
                nouns[-1] += token.form
            else:
                nouns.append(token.form)
            end = token.start + token.len
    return nouns
