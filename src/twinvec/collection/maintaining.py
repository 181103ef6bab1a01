"""Keeping a collection quick: its indexes complete, its files few, and how much an index finds.

Rows that no index has yet are searched all the same, so this is about time only; where it fails, nothing is lost.
"""

from __future__ import annotations

import logging

import numpy as np

from twinvec.collection.indexes import can_index, has_index, make_text_index, make_value_indexes, make_vector_index
from twinvec.collection.lance_errors import is_lances, reason_of
from twinvec.collection.lance_types import LanceTable
from twinvec.collection.schema import Header
from twinvec.collection.searching import dense_hits

__all__ = ["FLAT_ROWS", "is_worn", "maintain", "measure_recall", "rebuild"]

logger = logging.getLogger(__name__)

FLAT_ROWS = 100_000  # up to here a search reads all vectors, which is exact
LEAST_UNINDEXED, UNINDEXED_SHARE = 5_000, 0.3
LEAST_FRAGMENTS, ROWS_PER_FRAGMENT = 64, 1_000
SEED = 0


def maintain(table: LanceTable, header: Header) -> None:
    """After a write: make the indexes that are missing, and bring them up to date when that has become worth it."""
    try:
        if not has_index(table, "text"):
            make_text_index(table, header.language)
        n_rows = table.count_rows()
        if n_rows > FLAT_ROWS:
            make_value_indexes(table)
            if can_index(header.model.metric) and not has_index(table, "vector"):
                make_vector_index(table, header.model.metric)
        n_unindexed = table.index_stats("text_idx").num_unindexed_rows
        if is_worn(n_rows, n_unindexed, table.stats()["fragment_stats"]["num_fragments"]):
            table.optimize()
    except BaseException as error:
        if not is_lances(error):
            raise
        logger.warning("The texts are written, but the indexes could not be brought up to date: %s.", reason_of(error))


def rebuild(table: LanceTable, header: Header) -> None:
    """Join the files, and make all indexes anew that so many rows should have."""
    table.optimize()
    make_text_index(table, header.language)
    is_large = table.count_rows() > FLAT_ROWS
    if is_large:
        make_value_indexes(table)
    if is_large and can_index(header.model.metric):
        make_vector_index(table, header.model.metric)
    elif has_index(table, "vector"):
        table.drop_index("vector_idx")


def is_worn(n_rows: int, n_unindexed: int, n_fragments: int) -> bool:
    """Whether it is time to index the new rows and to join small files.

    Joining may rewrite all rows, so the limits grow with them: what is done again and again costs each row little.

    >>> is_worn(9_000, 100, 3), is_worn(9_000, 6_000, 3), is_worn(1_000_000, 6_000, 200)
    (False, True, False)
    """
    return (
        n_unindexed > max(LEAST_UNINDEXED, n_rows * UNINDEXED_SHARE)
        or n_fragments > LEAST_FRAGMENTS + n_rows / ROWS_PER_FRAGMENT
    )


def measure_recall(table: LanceTable, header: Header, *, k: int, n_queries: int) -> float:
    """The share of the true ``k`` nearest that a search finds, over stored vectors as queries; 1 without an index."""
    n_rows = table.count_rows()
    if not has_index(table, "vector") or n_rows < 2:
        return 1.0
    places = np.random.default_rng(SEED).choice(n_rows, min(n_queries, n_rows), replace=False)
    rows = table.take_offsets(sorted(places.tolist())).select(["id", "vector"]).to_arrow()
    n_true = n_found = 0
    for own, vector in zip(rows["id"].to_pylist(), rows["vector"].to_pylist(), strict=True):
        true, found = (
            {hit.id for hit in dense_hits(table, vector, k + 1, model=header.model, is_exact=exact)} - {own}
            for exact in (True, False)
        )
        n_true += len(true)
        n_found += len(true & found)
    return n_found / n_true
