"""Which rows make a batch, and in which order batches come: pure functions of a seed, so nothing needs saving.

Rows that share a text stay together, because a text is encoded once per batch. Batches hold rows of like length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from twinvec.types import Ids

__all__ = ["Batch", "Mixing", "SampledSet", "n_batches", "plan_epoch"]

Mixing = Literal["proportional", "in turn"]

WINDOW = 50  # batches whose rows are sorted by length together; more would make all batches alike in every epoch
TURNS, ROWS = 1, 2  # the first number of what is drawn, so that no two draws are the same
GROUP_SHARE = 4  # rows that share a text fill at most this part of a batch


@dataclass(frozen=True, slots=True)
class SampledSet:
    """What sampling needs to know of a data set.

    ``lengths`` is ``(rows,)``, tokens of each row. ``groups`` is ``(rows,)``: rows of equal value share a text and
    stay together; None keeps nothing together. ``share`` says how often a row is seen per epoch.
    """

    lengths: Ids
    groups: Ids | None = None
    share: float = 1.0

    def n_batches(self, batch_size: int) -> int:
        """Batches per epoch."""
        return max(1, round(self.share * _ceil(len(self.lengths), batch_size)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of one data set."""

    data_set: int
    rows: Ids


def n_batches(sets: Sequence[SampledSet], batch_size: int, mixing: Mixing) -> int:
    """Batches per epoch of all sets together."""
    counts = [each.n_batches(batch_size) for each in sets]
    return max(counts) * len(counts) if mixing == "in turn" else sum(counts)


def plan_epoch(
    sets: Sequence[SampledSet], batch_size: int, *, mixing: Mixing = "proportional", seed: int = 0, epoch: int = 0
) -> list[Batch]:
    """The batches of one epoch. ``in turn`` repeats the smaller sets until the largest is through."""
    counts = [each.n_batches(batch_size) for each in sets]
    if mixing == "in turn":
        turns = np.tile(np.arange(len(sets)), max(counts))
    else:
        turns = np.repeat(np.arange(len(sets)), counts)
        np.random.default_rng([TURNS, seed, epoch]).shuffle(turns)
    queues = [
        iter(_batches_of(each, batch_size, n=int((turns == i).sum()), seed=(ROWS, seed, epoch, i)))
        for i, each in enumerate(sets)
    ]
    return [Batch(int(i), next(queues[i])) for i in turns]


def _batches_of(data: SampledSet, batch_size: int, *, n: int, seed: tuple[int, ...]) -> list[Ids]:
    """``n`` batches; each pass through the rows is another order."""
    batches: list[Ids] = []
    passes = 0
    while len(batches) < n:
        batches += shuffled_batches(data, batch_size, np.random.default_rng([*seed, passes]))
        passes += 1
    return batches[:n]


def shuffled_batches(data: SampledSet, batch_size: int, rng: np.random.Generator) -> list[Ids]:
    """All rows once, in batches; at most one is smaller than ``batch_size``."""
    order = _grouped_order(data, batch_size, rng)
    order = np.concatenate([_by_length(part, data) for part in _cut(order, WINDOW * batch_size)])
    batches = _cut(order, batch_size)
    return [batches[i] for i in rng.permutation(len(batches))]


def _grouped_order(data: SampledSet, batch_size: int, rng: np.random.Generator) -> Ids:
    """The rows in random order, those of a group side by side."""
    n = len(data.lengths)
    if data.groups is None:
        return rng.permutation(n)
    shuffled = rng.permutation(n)
    _, group = np.unique(_limited(data.groups[shuffled], max(1, batch_size // GROUP_SHARE)), return_inverse=True)
    place = rng.permutation(int(group.max()) + 1)
    return np.asarray(shuffled[np.argsort(place[group], kind="stable")])


def _limited(groups: Ids, most: int) -> Ids:
    """Split groups of more than ``most`` rows: rows of equal result are of one group, at most ``most``.

    >>> len(set(_limited(np.array([7, 7, 7, 5]), 2).tolist()))
    3
    """
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(groups)), 0))
    rank = np.empty(len(groups), dtype=np.int64)
    rank[order] = np.arange(len(groups)) - first
    return np.asarray(groups * len(groups) + rank // most)


def _by_length(rows: Ids, data: SampledSet) -> Ids:
    """Rows sorted by length, longest first; a group goes by its longest row and stays together."""
    lengths = data.lengths[rows]
    if data.groups is not None:
        runs = np.cumsum(np.concatenate([[0], np.diff(data.groups[rows]) != 0]))
        longest: NDArray[np.int64] = np.zeros(int(runs[-1]) + 1, dtype=np.int64)
        np.maximum.at(longest, runs, lengths)
        lengths = longest[runs]
    return np.asarray(rows[np.argsort(-lengths, kind="stable")])


def _cut(rows: Ids, size: int) -> list[Ids]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _ceil(n: int, size: int) -> int:
    return -(-n // size)
