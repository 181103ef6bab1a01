"""Near-duplicates: which of many texts to keep, so that no two of them are alike and none that was unlike is lost.

Rows are taken in an order of preference. One that is near to a kept row goes, and no other: a chain of texts, each a
little different from the one before, does not collapse into its first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, UnknownNameError
from twinvec.search.graph import Graph, graph_of
from twinvec.search.mining import all_pairs_above
from twinvec.search.pairs import exact_cosines
from twinvec.search.rows import numeric_rows
from twinvec.types import Array, Ids

__all__ = ["Duplicates", "Keep", "choose_duplicates", "find_duplicates", "preference", "with_equal_texts"]

Keep = Literal["first", "longest"]


class Duplicates(NamedTuple):
    """Rows to keep, ``(kept,)``, rising; rows to remove, and for each the kept row it repeats and their score."""

    kept: Ids
    removed: Ids
    repeated: Ids
    scores: NDArray[np.float32]


def find_duplicates(
    vectors: ArrayLike, threshold: float = 0.95, *, keep: Keep = "first", lengths: ArrayLike | None = None
) -> Duplicates:
    """Rows of ``vectors`` ``(n, width)`` that repeat others, by a cosine of at least ``threshold``, exactly.

    ``keep`` prefers the row that comes first, or that of the longest text, by ``lengths`` ``(n,)``.

    >>> find_duplicates([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]]).removed.tolist()
    [2]
    """
    rows = numeric_rows(vectors, "vectors")
    order = preference(len(rows), keep, lengths)
    return choose_duplicates(graph_of(all_pairs_above(rows, threshold), len(rows)), order, rows)


def choose_duplicates(graph: Graph, order: Ids, vectors: Array) -> Duplicates:
    """What to keep of the rows of ``vectors`` ``(n, width)``, taken in ``order`` ``(n,)``, given which are alike."""
    repeated = np.full(len(order), -1, dtype=np.int64)  # the kept row that each one repeats: itself if it is kept
    for row in order[graph.counts[order] > 0].tolist():
        if repeated[row] < 0:
            near = graph.of(row)
            repeated[near[repeated[near] < 0]] = row
            repeated[row] = row
    is_removed = (repeated >= 0) & (repeated != np.arange(len(order)))
    removed = np.flatnonzero(is_removed)
    scores = exact_cosines(vectors, removed, repeated[removed])
    return Duplicates(np.flatnonzero(~is_removed), removed, repeated[removed], scores)


def with_equal_texts(texts: Sequence[str], different: Sequence[str], found: Duplicates) -> Duplicates:
    """What is found among the ``different`` texts, as rows of all ``texts``; equal ones repeat the first of them.

    >>> alone = Duplicates(np.array([0, 1]), *(np.empty(0, dtype=np.int64),) * 2, np.empty(0, dtype=np.float32))
    >>> with_equal_texts(["a", "b", "a"], ["a", "b"], alone).repeated.tolist()
    [0]
    """
    number = {text: place for place, text in enumerate(different)}
    places = np.fromiter((number[text] for text in texts), dtype=np.int64, count=len(texts))
    firsts = np.full(len(different), len(texts))
    np.minimum.at(firsts, places, np.arange(len(texts)))
    kept, scores = np.arange(len(different)), np.ones(len(different), dtype=np.float32)
    kept[found.removed], scores[found.removed] = found.repeated, found.scores
    repeated = firsts[kept[places]]
    is_removed = repeated != np.arange(len(texts))
    removed = np.flatnonzero(is_removed)
    return Duplicates(np.flatnonzero(~is_removed), removed, repeated[removed], scores[places[removed]])


def preference(n: int, keep: Keep, lengths: ArrayLike | None) -> Ids:
    """The order in which ``n`` rows are preferred, ``(n,)``."""
    if keep not in get_args(Keep):
        raise UnknownNameError("text to keep", keep, get_args(Keep))
    if keep == "first":
        return np.arange(n)
    longest = np.asarray([] if lengths is None else lengths)
    if longest.shape != (n,):
        raise InputError(f"keep='longest' needs the length of each of the {n} texts, got shape {longest.shape}.")
    return np.argsort(-longest, kind="stable")
