"""Rows that occur twice, and rows that say different things of the same texts; by sorting, so millions are quick."""

from __future__ import annotations

import numpy as np

from twinvec.examples.data import Examples
from twinvec.examples.roles import find_kind
from twinvec.types import Ids

__all__ = ["equal_rows", "find_contradictions", "find_duplicates", "text_grid"]


def text_grid(examples: Examples) -> Ids:
    """Places of all texts of each row, ``(n, texts in a row)``, roles in their order."""
    return np.column_stack(list(examples.places.values()))


def equal_rows(grid: Ids) -> Ids:
    """For each row of ``(n, m)`` the first row that equals it, ``(n,)``.

    >>> equal_rows(np.array([[1, 2], [3, 4], [1, 2]]))
    array([0, 1, 0])
    """
    order = np.lexsort(grid.T[::-1])  # stable, so the first row of a group stays its first
    is_new = np.ones(len(grid), dtype=bool)
    is_new[1:] = (grid[order][1:] != grid[order][:-1]).any(axis=1)
    first = np.empty(len(grid), dtype=np.int64)
    first[order] = order[is_new][np.cumsum(is_new) - 1]
    return first


def find_duplicates(examples: Examples) -> Ids:
    """Rows, ``(n_duplicates,)``, that are equal to an earlier row, the target included."""
    first = equal_rows(np.column_stack([text_grid(examples), _target_codes(examples)]))
    return np.flatnonzero(first != np.arange(len(first)))


def find_contradictions(examples: Examples) -> Ids:
    """Two rows, ``(n_pairs, 2)``, for each group of texts that occurs with different targets: its first, and the
    first of another target. In a symmetric kind swapped texts are the same group.
    """
    grid = text_grid(examples)
    if find_kind(examples.kind).is_symmetric:
        grid = np.sort(grid, axis=1)
    group, codes = equal_rows(grid), _target_codes(examples)
    others = np.flatnonzero(codes != codes[group])
    _, firsts = np.unique(group[others], return_index=True)
    second = np.sort(others[firsts])
    return np.column_stack([group[second], second])


def _target_codes(examples: Examples) -> Ids:
    if examples.targets is None:
        return np.zeros(len(examples), dtype=np.int64)
    return np.unique(examples.targets, return_inverse=True)[1].astype(np.int64).reshape(-1)
