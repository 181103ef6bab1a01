"""A data set with the objective that it is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from twinvec.examples import Examples
from twinvec.train.objectives import compare
from twinvec.train.sampling import SampledSet
from twinvec.train.teaching import joined_vectors
from twinvec.train.tokens import TokenTable
from twinvec.types import Ids, Vectors

__all__ = ["Task", "used_ids"]

GROUPED_KINDS = ("labelled_pairs", "scored_pairs", "marked_pairs", "triplets")  # ranking wants different texts


@dataclass(frozen=True)
class Task:
    """Examples, their tokens and their objective; ``teachers`` are ``(texts, width)`` each, of every different text."""

    examples: Examples
    tokens: TokenTable
    objective: nn.Module
    share: float = 1.0
    teachers: tuple[Vectors, ...] = ()

    @cached_property
    def sampled(self) -> SampledSet:
        """What sampling needs to know."""
        lengths = self.tokens.lengths
        whole = sum(_by_row(lengths[places]).sum(axis=1) for places in self.examples.places.values())
        first = next(iter(self.examples.places.values()))
        groups = first if self.examples.kind in GROUPED_KINDS else None
        return SampledSet(np.asarray(whole), groups, self.share)

    def texts_of(self, rows: Ids) -> tuple[Ids, dict[str, Ids]]:
        """The different texts of some rows, and for each role the places of its texts among them."""
        places = {role: texts[rows] for role, texts in self.examples.places.items()}
        different, where = np.unique(np.concatenate([each.ravel() for each in places.values()]), return_inverse=True)
        ends = np.cumsum([each.size for each in places.values()])[:-1]
        found = np.split(where, ends)
        return different, {
            role: part.reshape(each.shape) for (role, each), part in zip(places.items(), found, strict=True)
        }

    def loss(self, vectors: Tensor, rows: Ids, texts: tuple[Ids, dict[str, Ids]]) -> Tensor:
        """The objective of some rows; ``vectors`` are those of their different texts."""
        _, places = texts
        index = {role: torch.from_numpy(each).to(vectors.device) for role, each in places.items()}
        by_role = {role: vectors[each] for role, each in index.items()}
        return compare(self.objective, by_role, target=self._target(rows, vectors.device), ids=index)

    def _target(self, rows: Ids, device: Any) -> Tensor | None:  # noqa: ANN401 - a torch device
        if self.teachers:
            own = self.examples.places["text"][rows]
            return torch.from_numpy(joined_vectors([each[own] for each in self.teachers])).to(device)
        if self.examples.targets is None:
            return None
        return torch.from_numpy(self.examples.targets[rows]).to(device)


def _by_row(values: Ids) -> Ids:
    return values.reshape(len(values), -1)


def used_ids(tasks: list[Task]) -> Ids:
    """The token ids that occur in any text of any task, sorted."""
    return np.unique(np.concatenate([np.unique(task.tokens.ids) for task in tasks])).astype(np.int64)
