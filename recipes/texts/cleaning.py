"""Remove markup from texts, and decide whether the rest is usable English prose.

The rules are independent of the source of a text. They are simple and drop too much rather than too little.
"""

from __future__ import annotations

import html
import re
import unicodedata

__all__ = [
    "COMMON_WORDS",
    "LONG_WORDS",
    "MAX_WORDS",
    "MIN_WORDS",
    "fold",
    "is_english",
    "is_prose",
    "key_of",
    "plain",
    "usable",
]

MIN_WORDS = 3
MAX_WORDS = 220
LONG_WORDS = 60  # from this many words on, a text counts as a paragraph

COMMON = """
    a about after all also am an and any are as at be because been before being between both but by can could did do
    does during each for from had has have he her here him his how i if in into is it its just like may me might more
    most must my no not of off on one only or other our out over she should so some such than that the their them then
    there these they this those through to too under until up upon us use used using very was we were what when where
    which while who whom whose why will with within without would you your
"""
COMMON_WORDS = frozenset(COMMON.split())

MARKUP = (
    (re.compile(r"<!--.*?-->", re.DOTALL), " "),
    (re.compile(r"</?(?:a|b|code|em|i|span|strong|sub|sup|tt|u)(?:\s[^<>]*)?>", re.IGNORECASE), ""),  # within a line
    (re.compile(r"</?[a-zA-Z][^<>]*>"), " "),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), " "),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),  # [words](address)
    (re.compile(r"\[([^\]]+)\]\[[^\]]*\]"), r"\1"),  # [words][label]
    (re.compile(r":[a-zA-Z:+-]+:`~?\.?!?([^`<]+?)\s*(?:<[^`>]*>)?`"), r"\1"),  # :role:`words <target>`
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`_+"), r"\1"),  # `words <address>`_
    (re.compile(r"\[[\w#,. -]{1,12}\]_"), " "),  # a citation, [1]_
    (re.compile(r"`+([^`]*)`+_*"), r"\1"),
    (re.compile(r"\( +\)"), " "),  # what a citation leaves
    (re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+"), ""),  # an item of a list
    (re.compile(r"(?<!\w)(\*\*|__|\*|_)(?=\S)([^*_]+?)(?<=\S)\1(?!\w)"), r"\2"),  # *stressed*, _stressed_
)
SPACE_BEFORE_MARK = re.compile(r"(?<=\w) +(?=[,;:.!?)](?:\s|$))")
ADDRESS = re.compile(r"https?:|www\.|\w@\w+\.\w|\w\.(?:com|org|net|html?)\b")
CODE_MARKS = re.compile(r"[{}<>=\\|_^~#$`\[\]]|::|->|\*\*|\(\)|//|--\w")
NAME_MARKS = re.compile(r"\b[a-z]+[A-Z]\w*|\w\.\w+\.\w")
BROKEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2500-\u259f\u2022\ue000-\uf8ff\ufffd]|[\u00c2\u00c3\u00e2][\u0080-\u00bf\u2018-\u2122]"
)
UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
DANGLING = frozenset({"a", "an", "and", "are", "as", "by", "e.g", "i.e", "is", "or", "than", "the"})
OPENING = "\"'(\u201c\u2018"
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
NO_KEY = re.compile(r"[\W_]+")
CAPITAL = re.compile(r"[A-Z]")
DIGIT = re.compile(r"\d")
LETTERS = re.compile(r"[^\W\d_]+")


def fold(text: str) -> str:
    """The text on one line, in Unicode's composed form (NFC), with single spaces.

    >>> fold("  two\\n lines\\u00a0here ")
    'two lines here'
    """
    return " ".join(UNSEEN.sub("", unicodedata.normalize("NFC", text)).split())


def plain(text: str) -> str:
    """The text on one line, without HTML, Markdown or reStructuredText markup.

    >>> plain("<p>See <code>[the guide](x.html)</code> &amp; :ref:`more <target>` of ``it``.</p>")
    'See the guide & more of it.'
    """
    for pattern, replacement in MARKUP:
        text = pattern.sub(replacement, text)
    return SPACE_BEFORE_MARK.sub("", fold(html.unescape(text)))  # last: &lt;p&gt; is text about a tag, not a tag


def key_of(text: str) -> str:
    """The text without case, punctuation and white space; texts with equal keys count as the same.

    >>> key_of("It's  a DOG .") == key_of("it 's a dog")
    True
    """
    return NO_KEY.sub("", unicodedata.normalize("NFKC", text).casefold())


def is_english(text: str) -> bool:
    """Whether the letters are mostly ASCII and, from eight words on, one word in seven is a common English one.

    >>> is_english("The cat sat on the mat."), is_english("Der Hund von nebenan hat heute wieder gebellt")
    (True, False)
    """
    letters = "".join(LETTERS.findall(text))
    if not letters or len(letters.encode("ascii", "ignore")) < 0.95 * len(letters):
        return False
    words = [word.lower() for word in WORD.findall(text)]
    return len(words) < 8 or sum(word in COMMON_WORDS for word in words) * 7 >= len(words)


def is_prose(text: str) -> bool:
    """Whether the text is prose: few digits and capitals, no addresses, almost no signs of code or tables.

    >>> is_prose("A short line, as people write it."), is_prose("for (i = 0; i < n; i++) { total += x[i]; }")
    (True, False)
    """
    n_words = len(text.split())
    n_signs = len("".join(text.split()))
    n_letters = len("".join(LETTERS.findall(text)))
    n_capitals = len(CAPITAL.findall(text))
    n_digits = len(DIGIT.findall(text))
    return (
        n_letters >= 0.75 * n_signs
        and n_digits <= 0.12 * n_signs
        and n_capitals <= 0.3 * n_letters
        and not ADDRESS.search(text)
        and not BROKEN.search(text)
        and len(CODE_MARKS.findall(text)) * 40 <= n_words
        and len(NAME_MARKS.findall(text)) * 12 <= n_words
        and (text[0].isalnum() or text[0] in OPENING)
        and not text.endswith((":", ",", ";", "(", "-"))
        and text.rsplit(maxsplit=1)[-1].strip(".,;:()").lower() not in DANGLING
    )


def usable(text: str, *, min_words: int = MIN_WORDS) -> bool:
    """Whether a text is English prose of ``min_words`` to 220 words."""
    return min_words <= len(text.split()) <= MAX_WORDS and is_prose(text) and is_english(text)
