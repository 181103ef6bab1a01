"""Split sentences, list English function words, and collect sentences from Python's docstrings as sample text."""

from __future__ import annotations

import ast
import gc
import os
import re
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

__all__ = ["FUNCTION_WORDS", "are_near_duplicates", "gather_sentences", "shared_words", "split_sentences"]

SKIPPED_FOLDERS = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})
MIN_WORDS, MAX_WORDS = 3, 60
MIN_PLAIN = 0.75  # minimum share of purely alphabetic words; below it, the text is code, a path or a formula

NEW_ITEM = re.compile(r"(?:^|\n)\s*(?:[-*+o]|\d+[.)])\s+")
NO_PROSE = re.compile(r"^\s*(?:>>>|\.\.\. |\.\. |[-=~^+|#*]{3})|\S {3,}\S|\t", re.MULTILINE)
PLAIN_WORD = re.compile(r"[(\"'`]?[A-Za-z]+(?:['-][A-Za-z]+)*['\"`)]?[.,:;!?]?")


def gather_sentences(n: int, root: Path | None = None) -> list[str]:
    """The first ``n`` distinct sentences in the docstrings below ``root``, or all if there are fewer."""
    folder = Path(sysconfig.get_path("stdlib")) if root is None else root
    found = (
        sentence
        for file in python_files(folder)
        for docstring in docstrings(file)
        for sentence in docstring_sentences(docstring)
    )
    with gc_disabled():
        return list(islice(different(found), n))


def python_files(root: Path) -> list[Path]:
    """The modules below ``root``, topmost first, without tests and installed packages."""
    found: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(found, key=lambda path: (len(path.parts), path.as_posix()))


def docstrings(file: Path) -> Iterator[str]:
    """The docstrings of a module, its classes and functions, in order; none if the file is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the file's strings
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from filter(None, [ast.get_docstring(node)])
        body = getattr(node, "body", None)  # statements only: walking every expression takes twice as long
        todo.extend(reversed(body) if isinstance(body, list) else ())


def docstring_sentences(docstring: str) -> list[str]:
    """The sentences of a docstring, white space collapsed, without examples, tables, code or headings.

    >>> docstring_sentences("Open a file.  It must\\n exist already.\\n\\n>>> open('a')")
    ['Open a file.', 'It must exist already.']
    """
    blocks = [item for block in re.split(r"\n\s*\n", docstring) for item in NEW_ITEM.split(block)]
    prose = (block for block in blocks if not NO_PROSE.search(block))
    return [sentence for block in prose for sentence in split_sentences(block) if is_sentence(sentence)]


def is_sentence(text: str) -> bool:
    """Whether a text looks like a sentence: a capital letter, end punctuation, and mostly plain words.

    >>> is_sentence("Return the sum of both numbers."), is_sentence("X = a[0] + b->c.")
    (True, False)
    """
    parts = text.split()
    if not (MIN_WORDS <= len(parts) <= MAX_WORDS and text[0].isupper() and text[-1] in ".!?"):
        return False
    return sum(PLAIN_WORD.fullmatch(part) is not None for part in parts) >= MIN_PLAIN * len(parts)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable garbage collection in a block: syntax trees have very many objects and no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, letters and digits only.

    >>> words("It's (not) a B-tree.")
    ('it', 's', 'not', 'a', 'b', 'tree')
    """
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))


def different(texts: Iterable[str]) -> Iterator[str]:
    """The texts whose words did not occur in an earlier text."""
    seen: set[tuple[str, ...]] = set()
    for text in texts:
        key = words(text)
        if key not in seen:
            seen.add(key)
            yield text


def are_near_duplicates(left: str, right: str) -> bool:
    """Whether two texts have the same words in any order, except for one added, dropped or changed word.

    >>> are_near_duplicates("Return the name.", "Return a name!"), are_near_duplicates("Go up.", "Come down.")
    (True, False)
    """
    a, b = Counter(words(left)), Counter(words(right))
    return max((a - b).total(), (b - a).total()) <= 1


def shared_words(left: str, right: str) -> float:
    """The share of common words among all words of two texts (Jaccard similarity).

    >>> shared_words("Open the file.", "Close the file!")
    0.5
    """
    a, b = set(words(left)), set(words(right))
    return len(a & b) / max(len(a | b), 1)


ENDS = re.compile(r"""[.!?\u2026]+["'\u201d\u2019)\]]*(?=\s+["'\u201c\u2018(\[]?[^\W_a-z])|[\u3002\uff01\uff1f]""")
ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|cf|ca|No|Nos|vol|pp|p|Fig|Figs|Eq|al|approx|Inc|Ltd|Co|Gen|Col|Capt|Lt)"
    r"|\b[A-Z]|\b[a-z]\.[a-z])\.$"
)
LONGEST_ABBREVIATION = 8


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences, white space collapsed. Abbreviations and initials do not end a sentence.

    >>> split_sentences("Dr. A. Smith came at 5.30 p.m. on Monday. He left! Why?")
    ['Dr. A. Smith came at 5.30 p.m. on Monday.', 'He left!', 'Why?']
    """
    folded = " ".join(text.split())
    sentences, start = [], 0
    for match in ENDS.finditer(folded):
        if not ABBREVIATION.search(folded, max(start, match.end() - LONGEST_ABBREVIATION), match.end()):
            sentences.append(folded[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in [*sentences, folded[start:].strip()] if sentence]


# English function words.
ARTICLES = "a an the this that these those each every either neither some any no all both half such another other"
PRONOUNS = (
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves one ones who whom whose which what whoever whatever "
    "someone somebody something anyone anybody anything everyone everybody everything nobody nothing none"
)
PREPOSITIONS = (
    "of in on at to from by with without within into onto upon over under above below between among through across "
    "against about around after before behind beside besides beyond during except for inside near off out outside "
    "past per since than toward towards until till up down via as like along amid despite throughout"
)
CONJUNCTIONS = "and or but nor so yet if unless although though because while whereas whether when where why how then"
AUXILIARIES = (
    "be am is are was were been being have has had having do does did doing done will would shall should can could may "
    "might must ought need dare cannot"
)
PARTICLES = "not there here too also very just only even still more most less least much many few own same"
CONTRACTED = "s t re ve ll d m don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn"  # don't

FUNCTION_WORDS: frozenset[str] = frozenset(
    " ".join((ARTICLES, PRONOUNS, PREPOSITIONS, CONJUNCTIONS, AUXILIARIES, PARTICLES, CONTRACTED)).split()
)
