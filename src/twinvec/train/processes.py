"""Several processes that train one network: who takes which texts, and how their gradients become one.

The joint batch is the recipe's batch, however many processes share it. Each encodes its share of the batch's different
texts; then all hold all vectors, and compute the same loss. So in-batch negatives are those of the joint batch, and the
loss is that of one process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twinvec.extras import require
from twinvec.types import Ids

__all__ = ["Processes", "find_processes"]


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1
    device: str = "cpu"

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    def share(self, lengths: Ids) -> Ids:
        """The places of the texts that this process encodes, ``lengths`` being the tokens of each.

        >>> Processes(rank=1, count=2).share(np.array([5, 9, 7, 3]))
        array([0, 2])
        """
        # Dealt out longest first, there and back again, so that all get about as many tokens.
        order = np.argsort(-lengths, kind="stable")
        turn = np.arange(len(order)) % (2 * self.count)
        return np.sort(order[np.minimum(turn, 2 * self.count - 1 - turn) == self.rank])

    def joint(self, mine: Tensor, places: Ids, n: int) -> Tensor:
        """All ``(n, width)`` vectors; gradients flow to those of this process, ``mine``, at ``places``."""
        if self.count == 1:
            return mine  # all of them, in order
        index = torch.from_numpy(places).to(mine.device)
        rows = mine.new_zeros(n, mine.shape[1])
        with torch.no_grad():
            rows[index] = mine.detach()
            torch.distributed.all_reduce(rows)
        return rows.index_copy(0, index, mine)

    def add_gradients(self, parameters: Iterable[Any]) -> None:
        """Sum the gradients of all processes, each of which knows those of its own texts."""
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        flat = torch.cat([_gradient(parameter).flatten() for parameter in trained])
        torch.distributed.all_reduce(flat)
        for parameter, part in zip(trained, flat.split([p.numel() for p in trained]), strict=True):
            parameter.grad = part.view_as(parameter)

    def agree(self, value: float) -> float:
        """The first process's value, in all of them; waits for all."""
        if self.count == 1:
            return value
        told = torch.tensor([value], dtype=torch.float64, device=self.device)
        torch.distributed.broadcast(told, 0)
        return float(told.item())


def _gradient(parameter: Any) -> Tensor:  # noqa: ANN401 - a torch Parameter
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def find_processes() -> Processes:
    """What ``accelerate launch`` made of this process; without it, the only one."""
    state = require("accelerate", extra="train", feature="Training").PartialState()
    return Processes(int(state.process_index), int(state.num_processes), str(state.device))
