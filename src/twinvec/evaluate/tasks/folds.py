"""Cutting rows into folds: seeded, with the same mix of labels in each, or with whole groups in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from twinvec.errors import InputError
from twinvec.types import Array, Ids

__all__ = ["label_folds", "plain_folds", "splits_of"]


def label_folds(labels: Sequence[int] | Array, n_folds: int, *, seed: int) -> Ids:
    """The fold of every row, ``(n,)``: each label is dealt out evenly, in a seeded order.

    >>> np.bincount(label_folds([0, 0, 0, 0, 1, 1], 2, seed=0)).tolist()
    [3, 3]
    """
    labels = np.asarray(labels)
    _check(n_folds, len(labels))
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]  # by label, shuffled within each
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % n_folds
    return folds


def plain_folds(n_rows: int, n_folds: int, *, seed: int) -> Ids:
    """The fold of every row, ``(n,)``: folds of equal size (or one more) in a seeded order.

    >>> np.bincount(plain_folds(7, 3, seed=0)).tolist()
    [3, 2, 2]
    """
    return label_folds(np.zeros(n_rows, dtype=np.int64), n_folds, seed=seed)


def splits_of(folds: Array) -> Iterator[tuple[Ids, Ids]]:
    """For every fold, in order: the rows of all the others, and its own.

    >>> [(train.tolist(), test.tolist()) for train, test in splits_of(np.array([0, 1, 0]))]
    [([1], [0, 2]), ([0, 2], [1])]
    """
    for fold in np.unique(folds):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def _check(n_folds: int, n_rows: int) -> None:
    if not 2 <= n_folds <= n_rows:
        raise InputError(
            f"{n_rows} rows cannot be cut into {n_folds} folds.", hint="Use 2 folds or more, not beyond the rows."
        )
