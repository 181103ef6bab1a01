"""The indexes of a collection's table, and Lance's errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeAlias

from twinvec.errors import CollectionError, TwinvecError, check_name
from twinvec.extras import require

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
    "is_lances",
    "lance_errors",
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


SOURCE_PLACE = re.compile(r",\s+\S+\.rs:\d+:\d+")
PREFIX = re.compile(
    r"^(?:lance error: |LanceError\(\w+\): |Invalid input, |External error: |.*Invalid user input: |"
    r"Query Execution error: |Error applying filter expression to batch: |Arrow error: |Cast error: |Compute error: )+"
)
LONGEST_REASON = 300  # of an object store it may hold whole answers of a server
UNREACHED = "Check the address, the network, and the options and rights of the store."
# what the reason says -> what to do about it; the first that is found
HINTS = {
    r"conflict|concurrent": "Another process has written at the same time; nothing was changed. Do it again.",
    r"os error (?:27|28|122)|No space|too large": "Make room on the disk; nothing was changed.",
    r"Generic (?:S3|GCS|MicrosoftAzure|HTTP)": UNREACHED,
    r"os error (?:1|13|30)\b|denied|read-only": "Check the rights to the folder.",
}
PANICS = ("RustPanic", "PanicException")  # what its Rust code raises on some damaged files; private classes
DAMAGED = "A file of the collection is missing or damaged; bring it back from a copy."


def reason_of(error: BaseException) -> str:
    """What an error of Lance says, without the places in its source.

    >>> reason_of(RuntimeError("lance error: LanceError(IO): file size is too small, /x/lance-io/src/utils.rs:172:20"))
    'file size is too small'
    """
    text = SOURCE_PLACE.sub("", str(error).splitlines()[0] if str(error) else type(error).__name__)
    reason = PREFIX.sub("", text).rstrip(". ")
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]} ..."


def is_lances(error: BaseException) -> bool:
    """Whether an error is one that Lance raises, and not ours or Python's.

    >>> is_lances(RuntimeError("lance error: ...")), is_lances(KeyboardInterrupt())
    (True, False)
    """
    is_known = isinstance(error, (RuntimeError, OSError, ValueError)) or type(error).__name__ in PANICS
    return is_known and not isinstance(error, TwinvecError)


@contextmanager
def lance_errors(doing: str, *, hint: str | None = None) -> Iterator[None]:
    """Turn whatever Lance raises while ``doing`` something (such as "read /data/notes") into a CollectionError.

    Without a ``hint`` what it raises decides what to do about it.
    """
    try:
        yield
    except BaseException as error:
        if not is_lances(error):
            raise
        reason = reason_of(error)
        fitting = (what for pattern, what in HINTS.items() if re.search(pattern, reason, re.IGNORECASE))
        raise CollectionError(f"Cannot {doing}: {reason}.", hint=hint or next(fitting, DAMAGED)) from error


LANGUAGES = tuple(
    [
        "Arabic",
        "Danish",
        "Dutch",
        "English",
        "Finnish",
        "French",
        "German",
        "Greek",
        "Hungarian",
        "Italian",
        "Norwegian",
        "Portuguese",
        "Romanian",
        "Russian",
        "Spanish",
        "Swedish",
        "Tamil",
        "Turkish",
    ]
)
ROWS_PER_PARTITION = 4096
PROBED_SHARE, LEAST_PROBES = 0.1, 20


def check_language(language: str | None) -> None:
    """Refuse a language whose words cannot be reduced to stems."""
    if language is not None:
        check_name("language", language, LANGUAGES)


def has_index(table: LanceTable, column: str) -> bool:
    """Whether a column has an index in this version of the table."""
    return any(list(index.columns) == [column] for index in table.list_indices())


def make_text_index(table: LanceTable, language: str | None) -> None:
    """Index the words of the texts; with a language, their stems, without its commonest words."""
    options = {"stem": False, "remove_stop_words": False} if language is None else {"language": language}
    table.create_index("text", config=_index().FTS(**options), replace=True)


def make_value_indexes(table: LanceTable) -> None:
    """Index ids and the texts' hashes, by which rows are looked up."""
    for column in ("id", "text_hash"):
        if not has_index(table, column):
            table.create_index(column, config=_index().BTree())


def can_index(metric: str) -> bool:
    """Whether vectors can be divided into cells: by dot product, Lance's k-means puts almost all into one."""
    return metric != "dot"


def make_vector_index(table: LanceTable, metric: str) -> None:
    """Divide the vectors into cells; a search then reads the nearest cells only. The vectors in them stay exact."""
    config = _index().IvfFlat(distance_type=metric, num_partitions=n_partitions(table.count_rows()))
    table.create_index("vector", config=config, replace=True)


def n_partitions(n_rows: int) -> int:
    """Cells of an index over so many rows.

    >>> n_partitions(10), n_partitions(1_000_000)
    (1, 244)
    """
    return max(1, n_rows // ROWS_PER_PARTITION)


def n_probes(n_rows: int) -> int:
    """Cells that a search reads: a tenth, and never fewer than 20.

    >>> n_probes(10), n_probes(1_000_000)
    (20, 24)
    """
    return max(LEAST_PROBES, int(n_partitions(n_rows) * PROBED_SHARE))


def _index() -> ModuleType:
    return require("lancedb.index", extra="search", feature="A collection")
