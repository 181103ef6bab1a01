"""The indexes of a collection's table, and the translation of Lance's errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import ModuleType
from typing import Any, TypeAlias

from twinvec.errors import CollectionError, TwinvecError, check_name
from twinvec.extras import require
from twinvec.model.scripts import script_of

__all__ = [
    "UNREACHED",
    "ArrowBatch",
    "ArrowSchema",
    "ArrowTable",
    "ArrowType",
    "LanceDatabase",
    "LanceQuery",
    "LanceTable",
    "can_index",
    "check_language",
    "has_index",
    "is_lance_error",
    "lance_errors",
    "language_of",
    "make_text_index",
    "make_value_indexes",
    "make_vector_index",
    "n_probes",
    "reason_of",
]

LanceDatabase: TypeAlias = Any
LanceTable: TypeAlias = Any
LanceQuery: TypeAlias = Any
ArrowBatch: TypeAlias = Any
ArrowTable: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowType: TypeAlias = Any


SOURCE_LINE = re.compile(r",\s+\S+\.rs:\d+:\d+")
PREFIX = re.compile(
    r"^(?:lance error: |LanceError\(\w+\): |Invalid input, |External error: |.*Invalid user input: |"
    r"Query Execution error: |Error applying filter expression to batch: |Arrow error: |Cast error: |Compute error: )+"
)
MAX_REASON = 300  # an object store may return a whole server response
UNREACHED = "Check the address, the network, and the options and permissions of the store."
# pattern of the reason -> hint; the first match counts
HINTS = {
    r"conflict|concurrent": "Another process wrote at the same time; nothing was changed. Try again.",
    r"os error (?:27|28|122)|No space|too large": "Free some disk space; nothing was changed.",
    r"Generic (?:S3|GCS|MicrosoftAzure|HTTP)": UNREACHED,
    r"os error (?:1|13|30)\b|denied|read-only": "Check the permissions of the folder.",
}
PANICS = ("RustPanic", "PanicException")  # private classes that Lance's Rust code raises on some damaged files
DAMAGED = "A file of the collection is missing or damaged; restore it from a backup."


def reason_of(error: BaseException) -> str:
    """The message of a Lance error, without the lines of its source.

    >>> reason_of(RuntimeError("lance error: LanceError(IO): file size is too small, /x/lance-io/src/utils.rs:172:20"))
    'file size is too small'
    """
    text = SOURCE_LINE.sub("", str(error).splitlines()[0] if str(error) else type(error).__name__)
    reason = PREFIX.sub("", text).rstrip(". ")
    return reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]} ..."


def is_lance_error(error: BaseException) -> bool:
    """Whether Lance may have raised an error, as opposed to Twinvec or Python.

    >>> is_lance_error(RuntimeError("lance error: ...")), is_lance_error(KeyboardInterrupt())
    (True, False)
    """
    is_known = isinstance(error, (RuntimeError, OSError, ValueError)) or type(error).__name__ in PANICS
    return is_known and not isinstance(error, TwinvecError)


@contextmanager
def lance_errors(doing: str, *, hint: str | None = None) -> Iterator[None]:
    """Turn errors of Lance while ``doing`` something (such as "read /data/notes") into a CollectionError.

    Without a ``hint``, the message of the error selects one.
    """
    try:
        yield
    except BaseException as error:
        if not is_lance_error(error):
            raise
        reason = reason_of(error)
        hints = (text for pattern, text in HINTS.items() if re.search(pattern, reason, re.IGNORECASE))
        raise CollectionError(f"Cannot {doing}: {reason}.", hint=hint or next(hints, DAMAGED)) from error


# fmt: off
LANGUAGES = (
    "Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian",
    "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish",
)
# fmt: on
# Languages of which parts of words are indexed: one and two characters in a row. Korean joins particles to words, and
# Japanese and Chinese have no spaces. With 150 queries of paraKQC, 75 % of the first nine hits are right; with two
# characters only 73 %, with two and three 67 %, with whole words 50 %. One character finds words such as 물.
NGRAM_LANGUAGES = {"Hangul": "Korean", "Kana": "Japanese", "Han": "Chinese"}  # by script
NGRAMS = {"base_tokenizer": "ngram", "ngram_min_length": 1, "ngram_max_length": 2}
UNSTEMMED = {"stem": False, "remove_stop_words": False}
ROWS_PER_PARTITION = 4096
PROBED_SHARE, LEAST_PROBES = 0.1, 20


def check_language(language: str | None) -> None:
    """Refuse a language that has neither a stemmer nor n-grams."""
    if language is not None:
        check_name("language", language, (*LANGUAGES, *NGRAM_LANGUAGES.values()))


def language_of(texts: Iterable[str]) -> str:
    """The language for word search in texts: Korean, Japanese or Chinese if half of their letters are, else English.

    >>> language_of(["비밀번호를 잊었어요", "API 키"]), language_of(["猫が座る"]), language_of(["A cat", "한국"])
    ('Korean', 'Japanese', 'English')
    """
    counts = Counter(filter(None, map(script_of, chain.from_iterable(texts))))
    asian = {script: counts[script] for script in NGRAM_LANGUAGES if counts[script]}
    if not asian or 2 * sum(asian.values()) < counts.total():
        return "English"
    if "Kana" in asian and asian.get("Hangul", 0) < asian["Kana"]:
        return NGRAM_LANGUAGES["Kana"]  # Japanese text is half Chinese characters
    return NGRAM_LANGUAGES[max(asian, key=lambda script: asian[script])]


def has_index(table: LanceTable, column: str) -> bool:
    """Whether a column has an index in this version of the table."""
    return any(list(index.columns) == [column] for index in table.list_indices())


def make_text_index(table: LanceTable, language: str | None) -> None:
    """Index the words of the texts; with a language, their stems without stop words, or parts of words."""
    options: dict[str, Any] = UNSTEMMED if language is None else {"language": language}
    if language in NGRAM_LANGUAGES.values():
        options = UNSTEMMED | NGRAMS
    table.create_index("text", config=_index().FTS(**options), replace=True)


def make_value_indexes(table: LanceTable) -> None:
    """Index the columns that rows are looked up by: ids and text hashes."""
    for column in ("id", "text_hash"):
        if not has_index(table, column):
            table.create_index(column, config=_index().BTree())


def can_index(metric: str) -> bool:
    """Whether vectors can be partitioned: with dot product, Lance's k-means puts almost all into one cell."""
    return metric != "dot"


def make_vector_index(table: LanceTable, metric: str) -> None:
    """Partition the vectors into cells, so that a search reads the nearest cells only. The vectors stay exact."""
    config = _index().IvfFlat(distance_type=metric, num_partitions=n_partitions(table.count_rows()))
    table.create_index("vector", config=config, replace=True)


def n_partitions(n_rows: int) -> int:
    """The number of cells of an index over ``n_rows`` rows.

    >>> n_partitions(10), n_partitions(1_000_000)
    (1, 244)
    """
    return max(1, n_rows // ROWS_PER_PARTITION)


def n_probes(n_rows: int) -> int:
    """The number of cells that a search reads: a tenth, but at least 20.

    >>> n_probes(10), n_probes(1_000_000)
    (20, 24)
    """
    return max(LEAST_PROBES, int(n_partitions(n_rows) * PROBED_SHARE))


def _index() -> ModuleType:
    return require("lancedb.index", extra="search", feature="A collection")
