"""Batches: tokenized texts, seeded sampling, and data sets with their objectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from twinvec.data.examples import Examples
from twinvec.data.roles import find_kind
from twinvec.model.tokenizer import Tokenizer
from twinvec.training.objectives import compare
from twinvec.training.teachers import PrincipalVectors, joined_vectors
from twinvec.types import Ids, Vectors

__all__ = [
    "Batch",
    "LossOf",
    "Mixing",
    "Task",
    "TextTask",
    "TokenTable",
    "n_batches",
    "plan_epoch",
    "tokenize",
    "used_ids",
]

TEXTS_PER_CALL = 10_000


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The token ids of ``n`` texts: ``ids`` concatenates them, ``starts`` is ``(n + 1,)``."""

    ids: NDArray[np.int32]
    starts: Ids
    n_cut: int = 0

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ids:
        """The number of tokens of each text, ``(n,)``."""
        return np.diff(self.starts)

    def rows(self, indices: Sequence[int] | Ids) -> list[Ids]:
        """The token ids of some texts."""
        return [self.ids[self.starts[i] : self.starts[i + 1]].astype(np.int64) for i in indices]


def tokenize(texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> TokenTable:
    """The token ids of all texts with special tokens, truncated to ``max_tokens``."""
    room = max_tokens - tokenizer.n_special
    chunks, lengths, n_cut = [], [], 0
    for start in range(0, len(texts), TEXTS_PER_CALL):
        rows = tokenizer.ids(texts[start : start + TEXTS_PER_CALL])
        n_cut += sum(len(row) > room for row in rows)
        complete = [tokenizer.add_special_tokens(tokenizer.cut(row, room) if len(row) > room else row) for row in rows]
        lengths += [len(row) for row in complete]
        chunks.append(np.fromiter((i for row in complete for i in row), dtype=np.int32))
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ids = np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int32)
    return TokenTable(ids, starts, n_cut)


Mixing = Literal["proportional", "in turn"]

WINDOW = 50  # batches whose rows are sorted by length together; a larger window makes epochs too similar
TURNS, ROWS = 1, 2  # the first number of a seed, so that all seeds differ
GROUP_SHARE = 4  # rows that share a text fill at most 1/4 of a batch


@dataclass(frozen=True, slots=True)
class SampledSet:
    """A data set as seen by the sampler.

    ``lengths`` is ``(rows,)``, the tokens of each row. ``groups`` is ``(rows,)``: rows of equal value share a text and
    stay together; None means no groups. ``share`` is how often a row is seen per epoch.
    """

    lengths: Ids
    groups: Ids | None = None
    share: float = 1.0

    def n_batches(self, batch_size: int) -> int:
        """The number of batches per epoch."""
        return max(1, round(self.share * -(-len(self.lengths) // batch_size)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of one data set."""

    data_set: int
    rows: Ids


def n_batches(sets: Sequence[SampledSet], batch_size: int, mixing: Mixing) -> int:
    """The number of batches per epoch of all sets together."""
    counts = [each.n_batches(batch_size) for each in sets]
    return max(counts) * len(counts) if mixing == "in turn" else sum(counts)


def plan_epoch(
    sets: Sequence[SampledSet], batch_size: int, *, mixing: Mixing = "proportional", seed: int = 0, epoch: int = 0
) -> list[Batch]:
    """The batches of one epoch. ``in turn`` repeats smaller sets until the largest is done."""
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
    """``n`` batches; each pass over the rows has a new order."""
    batches: list[Ids] = []
    passes = 0
    while len(batches) < n:
        batches += shuffled_batches(data, batch_size, np.random.default_rng([*seed, passes]))
        passes += 1
    return batches[:n]


def shuffled_batches(data: SampledSet, batch_size: int, rng: np.random.Generator) -> list[Ids]:
    """All rows once, in batches; at most one batch is smaller than ``batch_size``."""
    order = _grouped_order(data, batch_size, rng)
    order = np.concatenate([_by_length(part, data) for part in _cut(order, WINDOW * batch_size)])
    batches = _cut(order, batch_size)
    return [batches[i] for i in rng.permutation(len(batches))]


def _grouped_order(data: SampledSet, batch_size: int, rng: np.random.Generator) -> Ids:
    """The rows in random order, with the rows of a group next to each other."""
    n = len(data.lengths)
    if data.groups is None:
        return rng.permutation(n)
    shuffled = rng.permutation(n)
    _, group = np.unique(_split_groups(data.groups[shuffled], max(1, batch_size // GROUP_SHARE)), return_inverse=True)
    order = rng.permutation(int(group.max()) + 1)
    return np.asarray(shuffled[np.argsort(order[group], kind="stable")])


def _split_groups(groups: Ids, most: int) -> Ids:
    """Split groups of more than ``most`` rows: return new group numbers.

    >>> len(set(_split_groups(np.array([7, 7, 7, 5]), 2).tolist()))
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
    """Rows sorted by length, longest first; a group stays together and counts as its longest row."""
    lengths = data.lengths[rows]
    if data.groups is not None:
        runs = np.cumsum(np.concatenate([[0], np.diff(data.groups[rows]) != 0]))
        longest: NDArray[np.int64] = np.zeros(int(runs[-1]) + 1, dtype=np.int64)
        np.maximum.at(longest, runs, lengths)
        lengths = longest[runs]
    return np.asarray(rows[np.argsort(-lengths, kind="stable")])


def _cut(rows: Ids, size: int) -> list[Ids]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


LossOf = Callable[[Tensor], Tensor]  # takes the network's outputs for all input rows of a batch, (rows, width)


class Task(Protocol):
    """A data set with its objective, as seen by the loop."""

    @property
    def examples(self) -> Examples:
        """The examples."""
        ...

    @property
    def objective(self) -> nn.Module:
        """The objective, whose parameters are trained too."""
        ...

    @property
    def sampled(self) -> SampledSet:
        """The data set as seen by the sampler."""
        ...

    @property
    def used_ids(self) -> Ids:
        """The token ids that occur in the examples."""
        ...

    def batch(self, rows: Ids) -> tuple[Sequence[Sized], LossOf]:
        """The inputs of the network for some examples, and the loss of its outputs for them.

        The length of an input is its number of tokens.
        """
        ...


@dataclass(frozen=True)
class TextTask:
    """Examples with the tokens of their texts; ``teachers`` are ``(texts, width)`` each, a row per unique text."""

    examples: Examples
    tokens: TokenTable
    objective: nn.Module
    share: float = 1.0
    teachers: tuple[Vectors | PrincipalVectors, ...] = ()
    groups: Ids | None = None  # (texts,): texts of equal value stay together in a batch

    @cached_property
    def sampled(self) -> SampledSet:
        """The data set as seen by the sampler."""
        lengths, n = self.tokens.lengths, len(self.examples)
        whole = sum(lengths[indices].reshape(n, -1).sum(axis=1) for indices in self.examples.indices.values())
        first = next(iter(self.examples.indices.values()))
        groups = first if find_kind(self.examples.kind).is_grouped else None
        if self.groups is not None:
            groups = self.groups[first]
        return SampledSet(np.asarray(whole), groups, self.share)

    @property
    def used_ids(self) -> Ids:
        """The token ids that occur in any text, sorted."""
        return np.unique(self.tokens.ids).astype(np.int64)

    def batch(self, rows: Ids) -> tuple[Sequence[Ids], LossOf]:
        """The tokens of the unique texts of some examples, and the loss of their vectors."""
        texts = self.texts_of(rows)
        return self.tokens.rows(texts[0]), partial(self.loss, rows=rows, texts=texts)

    def texts_of(self, rows: Ids) -> tuple[Ids, dict[str, Ids]]:
        """The unique texts of some rows, and for each role the indices of its texts among them."""
        indices = {role: texts[rows] for role, texts in self.examples.indices.items()}
        unique, where = np.unique(np.concatenate([each.ravel() for each in indices.values()]), return_inverse=True)
        parts = np.split(where, np.cumsum([each.size for each in indices.values()])[:-1])
        return unique, {
            role: part.reshape(each.shape) for (role, each), part in zip(indices.items(), parts, strict=True)
        }

    def loss(self, vectors: Tensor, rows: Ids, texts: tuple[Ids, dict[str, Ids]]) -> Tensor:
        """The loss of some rows; ``vectors`` are those of their unique texts."""
        index = {role: torch.from_numpy(each).to(vectors.device) for role, each in texts[1].items()}
        by_role = {role: vectors[each] for role, each in index.items()}
        return compare(self.objective, by_role, target=self._target(rows, vectors.device), ids=index)

    def _target(self, rows: Ids, device: Any) -> Tensor | None:  # noqa: ANN401 - a torch device
        if self.teachers:
            own = self.examples.indices["text"][rows]
            return torch.from_numpy(joined_vectors([each[own] for each in self.teachers])).to(device)
        if self.examples.targets is None:
            return None
        return torch.from_numpy(self.examples.targets[rows]).to(device)


def used_ids(tasks: Sequence[Task]) -> Ids:
    """The token ids that occur in any task, sorted."""
    return np.unique(np.concatenate([task.used_ids for task in tasks]))
