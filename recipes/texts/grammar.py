"""English inflection for the generated sentences: plurals, verb forms, comparatives, articles.

Small rules with small tables of exceptions; no dictionary. A phrase is inflected at one word: a noun phrase at its head
(``bird of prey`` -> ``birds of prey``), a verb phrase at its first word (``put on a hat`` -> ``putting on a hat``).
"""

from __future__ import annotations

import re

__all__ = ["article", "comparative", "gerund", "participle", "past", "plural", "third_person"]

PLURALS = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "foot": "feet", "tooth": "teeth",
    "goose": "geese", "mouse": "mice", "ox": "oxen", "knife": "knives", "leaf": "leaves", "wolf": "wolves",
    "shelf": "shelves", "calf": "calves", "loaf": "loaves", "thief": "thieves", "wife": "wives", "life": "lives",
    "scarf": "scarves", "half": "halves", "potato": "potatoes", "tomato": "tomatoes", "hero": "heroes",
    "mango": "mangoes", "buffalo": "buffaloes", "sheep": "sheep", "deer": "deer", "fish": "fish", "moose": "moose",
    "salmon": "salmon", "trout": "trout", "series": "series", "aircraft": "aircraft", "bison": "bison",
    "cattle": "cattle",
}  # fmt: skip
PASTS = {
    "be": ("was", "been"), "blow": ("blew", "blown"), "break": ("broke", "broken"), "build": ("built", "built"),
    "buy": ("bought", "bought"), "catch": ("caught", "caught"), "cut": ("cut", "cut"), "do": ("did", "done"),
    "draw": ("drew", "drawn"), "drink": ("drank", "drunk"), "drive": ("drove", "driven"), "eat": ("ate", "eaten"),
    "feed": ("fed", "fed"), "find": ("found", "found"), "fly": ("flew", "flown"), "get": ("got", "got"),
    "give": ("gave", "given"), "go": ("went", "gone"), "hang": ("hung", "hung"), "have": ("had", "had"),
    "hide": ("hid", "hidden"), "hit": ("hit", "hit"), "hold": ("held", "held"), "lay": ("laid", "laid"),
    "leave": ("left", "left"), "lie": ("lay", "lain"), "make": ("made", "made"), "put": ("put", "put"),
    "read": ("read", "read"), "ride": ("rode", "ridden"), "run": ("ran", "run"), "see": ("saw", "seen"),
    "sell": ("sold", "sold"), "shoot": ("shot", "shot"), "sing": ("sang", "sung"), "sit": ("sat", "sat"),
    "sleep": ("slept", "slept"), "slide": ("slid", "slid"), "speak": ("spoke", "spoken"), "stand": ("stood", "stood"),
    "sweep": ("swept", "swept"), "swim": ("swam", "swum"), "swing": ("swung", "swung"), "take": ("took", "taken"),
    "throw": ("threw", "thrown"), "wear": ("wore", "worn"), "write": ("wrote", "written"), "fall": ("fell", "fallen"),
    "sew": ("sewed", "sewn"), "fight": ("fought", "fought"), "kneel": ("knelt", "knelt"), "tell": ("told", "told"),
}  # fmt: skip
# Verbs of several syllables that look as if they doubled their last letter, but do not.
SINGLE = re.compile(r"(?:en|er|on|it|et|op(?<=velop)|el|ow)$")
SHORT_VOWEL = re.compile(r"(?:^|[^aeiou])[aeiou][bdgklmnprt]$")
SYLLABLE = re.compile(r"[aeiouy]+")
HISSING = re.compile(r"(?:s|x|z|ch|sh)$")
LIKE_YOU = re.compile(r"(?:u(?:ni(?!n|m)|s[aei]|r[aeiou]|t[aei]|ku)|eu|ewe|one\b|once)", re.IGNORECASE)
SILENT_H = re.compile(r"(?:hour|honest|honou?r|heir)", re.IGNORECASE)
COMPARATIVES = {"good": "better", "bad": "worse", "far": "farther", "fun": "more fun", "little": "less"}


def plural(noun: str) -> str:
    """The plural of a noun.

    >>> [plural(noun) for noun in ("box", "city", "day", "fire truck", "bird of prey", "snowman")]
    ['boxes', 'cities', 'days', 'fire trucks', 'birds of prey', 'snowmen']
    """
    head, middle, rest = noun.partition(" of ")
    if middle:
        return plural(head) + middle + rest
    start, last = _last_word(noun)
    if last in PLURALS:
        return start + PLURALS[last]
    if last.endswith(("man", "woman")) and last not in ("human", "german"):
        return start + last[:-2] + "en"
    return start + _with_s(last)


def _last_word(noun: str) -> tuple[str, str]:
    cut = max(noun.rfind(" "), noun.rfind("-")) + 1
    return noun[:cut], noun[cut:]


def _with_s(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if HISSING.search(word) else "s")


def third_person(verb: str) -> str:
    """The third person singular of a verb.

    >>> third_person("carry a box"), third_person("go"), third_person("catch")
    ('carries a box', 'goes', 'catches')
    """
    first, rest = _first_word(verb)
    irregular = {"have": "has", "be": "is", "do": "does", "go": "goes"}
    return irregular.get(first, _with_s(first)) + rest


def gerund(verb: str) -> str:
    """The present participle of a verb.

    >>> [gerund(verb) for verb in ("ride a bike", "run", "lie down", "see", "open", "play", "hug")]
    ['riding a bike', 'running', 'lying down', 'seeing', 'opening', 'playing', 'hugging']
    """
    first, rest = _first_word(verb)
    if first.endswith("ie"):
        stem = first[:-2] + "y"
    elif first.endswith("e") and not first.endswith(("ee", "oe", "ye")) and first != "be":
        stem = first[:-1]
    else:
        stem = _doubled(first)
    return stem + "ing" + rest


def past(verb: str) -> str:
    """The past tense of a verb.

    >>> past("stop"), past("carry"), past("throw a ball"), past("dance")
    ('stopped', 'carried', 'threw a ball', 'danced')
    """
    return _past(verb, 0)


def participle(verb: str) -> str:
    """The past participle of a verb.

    >>> participle("throw"), participle("wash"), participle("eat")
    ('thrown', 'washed', 'eaten')
    """
    return _past(verb, 1)


def _past(verb: str, form: int) -> str:
    first, rest = _first_word(verb)
    if first in PASTS:
        return PASTS[first][form] + rest
    if first.endswith("e"):
        return first + "d" + rest
    if first.endswith("y") and first[-2:-1] not in "aeiou":
        return first[:-1] + "ied" + rest
    return _doubled(first) + "ed" + rest


def _first_word(verb: str) -> tuple[str, str]:
    first, blank, rest = verb.partition(" ")
    return first, blank + rest


def _doubled(verb: str) -> str:
    """The verb with its last letter doubled, if it follows a short stressed vowel."""
    one_syllable = len(SYLLABLE.findall(verb)) == 1
    doubles = SHORT_VOWEL.search(verb.replace("qu", "q")) and (one_syllable or not SINGLE.search(verb))
    return verb + verb[-1] if doubles else verb


def comparative(adjective: str) -> str:
    """The comparative of an adjective.

    >>> [comparative(adjective) for adjective in ("dull", "funny", "big", "nice", "boring", "bad")]
    ['duller', 'funnier', 'bigger', 'nicer', 'more boring', 'worse']
    """
    if adjective in COMPARATIVES:
        return COMPARATIVES[adjective]
    n_syllables = len(SYLLABLE.findall(adjective.removesuffix("e")))
    if "-" in adjective or n_syllables > 2 or (n_syllables == 2 and not adjective.endswith("y")):
        return f"more {adjective}"
    if adjective.endswith("y") and adjective[-2] not in "aeiou":
        return adjective[:-1] + "ier"
    return adjective + "r" if adjective.endswith("e") else _doubled(adjective) + "er"


def article(phrase: str) -> str:
    """The phrase with "a" or "an" before it.

    >>> [article(phrase) for phrase in ("apple", "hour", "unicorn", "umbrella", "European city", "man")]
    ['an apple', 'an hour', 'a unicorn', 'an umbrella', 'a European city', 'a man']
    """
    sounds_open = (phrase[0] in "aeiouAEIOU" and not LIKE_YOU.match(phrase)) or SILENT_H.match(phrase)
    return f"{'an' if sounds_open else 'a'} {phrase}"
