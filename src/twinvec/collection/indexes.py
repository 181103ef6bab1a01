"""The indexes of a collection's table: of words always, of vectors and ids once there are many rows."""

from __future__ import annotations

from types import ModuleType

from twinvec.collection.lance_types import LanceTable
from twinvec.errors import UnknownNameError
from twinvec.extras import require

__all__ = [
    "LANGUAGES",
    "can_index",
    "check_language",
    "has_index",
    "make_text_index",
    "make_value_indexes",
    "make_vector_index",
    "n_partitions",
    "n_probes",
]

LANGUAGES = (
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
)
ROWS_PER_PARTITION = 4096
PROBED_SHARE, LEAST_PROBES = 0.1, 20


def check_language(language: str | None) -> None:
    """Refuse a language whose words cannot be reduced to stems."""
    if language is not None and language not in LANGUAGES:
        raise UnknownNameError("language", language, LANGUAGES)


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
