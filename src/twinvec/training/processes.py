"""Train in several processes: who takes which texts, and dropout that depends on seed and step only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed

from twinvec.choices import TrainDevice
from twinvec.errors import DeviceError, TwinvecError
from twinvec.types import Ids

__all__ = [
    "ALONE",
    "DROPOUT",
    "HEADS",
    "Processes",
    "drawn_from",
    "find_processes",
]

Result = TypeVar("Result")

PATIENCE = timedelta(hours=24)  # one process may make a teacher's vectors for long while the others wait


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
        """The indices of the texts that this process encodes, ``lengths`` being the tokens of each.

        >>> Processes(rank=1, count=2).share(np.array([5, 9, 7, 3]))
        array([0, 2])
        """
        # Dealt out longest first, there and back again, so that all get about as many tokens.
        order = np.argsort(-lengths, kind="stable")
        turn = np.arange(len(order)) % (2 * self.count)
        return np.sort(order[np.minimum(turn, 2 * self.count - 1 - turn) == self.rank])

    def joint(self, mine: Tensor, indices: Ids, n: int) -> Tensor:
        """All ``(n, width)`` vectors; gradients flow to those of this process, ``mine``, at ``indices``."""
        if self.count == 1:
            return mine  # all of them, in order
        index = torch.from_numpy(indices).to(mine.device)
        rows = mine.new_zeros(n, mine.shape[1])
        with torch.no_grad():
            rows[index] = mine.detach()
            distributed.all_reduce(rows)
        return rows.index_copy(0, index, mine)

    def add_gradients(self, parameters: Iterable[Any]) -> None:
        """Sum the gradients of all processes, each of which knows those of its own texts."""
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        flat = torch.cat([_gradient(parameter).flatten() for parameter in trained])
        distributed.all_reduce(flat)
        for parameter, part in zip(trained, flat.split([p.numel() for p in trained]), strict=True):
            parameter.grad = part.view_as(parameter)

    def is_any(self, mine: bool) -> bool:
        """Whether it is so in any of the processes."""
        if self.count == 1:
            return mine
        told = torch.tensor([float(mine)], device=self.device)
        distributed.all_reduce(told)
        return bool(told.item() > 0)

    def first(self, work: Callable[[], Result]) -> Result:
        """Do ``work`` in the first process; all get its result, or raise its error."""
        if self.count == 1:
            return work()
        told: list[Any] = [None, None]
        if self.is_first:
            try:
                told[0] = work()
            except TwinvecError as error:
                told[1] = error
        distributed.broadcast_object_list(told, 0)
        if told[1] is not None:
            raise told[1]
        result: Result = told[0]
        return result


ALONE = Processes()


def _gradient(parameter: Any) -> Tensor:  # noqa: ANN401 - a torch Parameter
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def find_processes(device: TrainDevice = "auto") -> Processes:
    """This process as its launcher made it (``accelerate launch``, ``torchrun``); without one, the only one."""
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError("torch sees no CUDA device.", hint="Use --device cpu.")
    has_cuda = torch.cuda.is_available() and device != "cpu"
    count, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if count == 1:
        return Processes(device="cuda" if has_cuda else "cpu")
    index = int(os.environ.get("LOCAL_RANK", rank))
    if has_cuda:
        torch.cuda.set_device(index)
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if has_cuda else "gloo", timeout=PATIENCE)
    return Processes(rank, count, f"cuda:{index}" if has_cuda else "cpu")


HEADS, DROPOUT = 0, 1  # the first number of what is drawn, so that no two draws are the same


@contextmanager
def drawn_from(*numbers: int, device: str = "cpu") -> Iterator[None]:
    """Let torch draw from a state made of these numbers; its own state comes back afterwards.

    >>> with drawn_from(3, 1): first = torch.rand(1)
    >>> with drawn_from(3, 1): bool(first == torch.rand(1))
    True
    """
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
    with torch.random.fork_rng(devices=[] if torch.device(device).type == "cpu" else [torch.device(device)]):
        torch.manual_seed(seed)
        yield
