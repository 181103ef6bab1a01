"""Helpers for all tasks: checks, pair features, folds, and embedding each distinct text once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from typing import TypeAlias, TypeVar

import numpy as np

from twinvec.errors import InputError, UnknownNameError
from twinvec.types import Array, Ids, Vectors
from twinvec.vector_store import VectorStore, embed_missing

__all__ = [
    "Embed",
    "check_choice",
    "check_columns",
    "check_finite",
    "embed_once",
    "features_of",
    "label_folds",
    "numbered",
    "pair_features",
    "plain_folds",
    "splits_of",
]

Name = TypeVar("Name", bound=str)


def check_columns(task: str, columns: Mapping[str, Sized], *, at_least: int = 1) -> None:
    """Refuse columns of different lengths, or with too few rows.

    >>> check_columns("sts", {"left": ["a", "b"], "right": ["c", "d"]}, at_least=2)
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise InputError(f"{task}: the columns differ in length: {counts}.", hint="Give one value per row in each.")
    if min(lengths.values()) < at_least:
        raise InputError(f"{task}: {min(lengths.values())} rows, but at least {at_least} are required.")


def check_finite(task: str, values: Iterable[float], *, what: str) -> None:
    """Refuse NaN and infinity; the error names the row, counted from 0.

    >>> check_finite("sts", [0.5, 1.0], what="gold score")
    """
    for row, value in enumerate(values):
        if not math.isfinite(value):
            raise InputError(f"{task}, row {row}: the {what} is {value}.", hint="Correct the value or remove the row.")


def check_choice(kind: str, name: str, *, known: Iterable[str]) -> None:
    """Refuse a name that is not known.

    >>> check_choice("statistic", "pearson", known=["pearson", "spearman"])
    """
    choices = list(known)
    if name not in choices:
        raise UnknownNameError(kind, name, choices)


def numbered(values: Sequence[Name]) -> tuple[list[int], tuple[Name, ...]]:
    """The index of each value among the sorted distinct values, and these.

    >>> numbered(["news", "forum", "news"])
    ([1, 0, 1], ('forum', 'news'))
    """
    names = tuple(sorted(set(values)))
    index = {name: i for i, name in enumerate(names)}
    return [index[value] for value in values], names


Embed: TypeAlias = Callable[[Sequence[str]], Vectors]  # n texts to (n, width)


def embed_once(embed: Embed, *columns: Sequence[str]) -> list[Vectors]:
    """The vectors of several lists of texts, ``(n, width)`` each; every distinct text is embedded once.

    >>> embedded = []
    >>> def lengths(texts):
    ...     embedded.extend(texts)
    ...     return np.array([[len(text)] for text in texts], dtype=np.float32)
    >>> [vectors.ravel().tolist() for vectors in embed_once(lengths, ["a", "bb"], ["bb", "a"])], embedded
    ([[1.0, 2.0], [2.0, 1.0]], ['a', 'bb'])
    """
    store = VectorStore(None)
    embed_missing(store, chain.from_iterable(columns), embed, source="The encoder")
    return [store.of(column) for column in columns]


def pair_features(left: Vectors, right: Vectors) -> Vectors:
    """``[|u - v|, u * v]`` as in Tai et al. (2015) and SentEval: two ``(n, width)`` give ``(n, 2 * width)``.

    >>> pair_features(np.array([[1.0, 2.0]]), np.array([[3.0, 2.0]])).tolist()
    [[2.0, 0.0, 3.0, 4.0]]
    """
    return np.concatenate([np.abs(left - right), left * right], axis=1)


def features_of(embed: Embed, texts: Sequence[str], *, others: Sequence[str] = ()) -> Vectors:
    """The vectors of single texts, ``(n, width)``, or with ``others`` the features of pairs, ``(n, 2 * width)``."""
    if others:
        return pair_features(*embed_once(embed, texts, others))
    return embed_once(embed, texts)[0]


def label_folds(labels: Sequence[int] | Array, n_folds: int, *, seed: int) -> Ids:
    """The fold of every row, ``(n,)``: each label is spread evenly over the folds, in a seeded order.

    >>> np.bincount(label_folds([0, 0, 0, 0, 1, 1], 2, seed=0)).tolist()
    [3, 3]
    """
    labels = np.asarray(labels)
    if not 2 <= n_folds <= len(labels):
        raise InputError(
            f"{len(labels)} rows cannot be split into {n_folds} folds.",
            hint="Use at least 2 folds, and at most as many as rows.",
        )
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]  # by label, shuffled within each
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % n_folds
    return folds


def plain_folds(n_rows: int, n_folds: int, *, seed: int) -> Ids:
    """The fold of every row, ``(n,)``, in a seeded order; fold sizes differ by at most 1.

    >>> np.bincount(plain_folds(7, 3, seed=0)).tolist()
    [3, 2, 2]
    """
    return label_folds(np.zeros(n_rows, dtype=np.int64), n_folds, seed=seed)


def splits_of(folds: Array) -> Iterator[tuple[Ids, Ids]]:
    """Yield for every fold the training rows, which are in the other folds, and the test rows.

    >>> [(train.tolist(), test.tolist()) for train, test in splits_of(np.array([0, 1, 0]))]
    [([1], [0, 2]), ([0, 2], [1])]
    """
    for fold in np.unique(folds):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
