"""Training in several processes: the split of texts, and dropout that depends only on seed and step."""

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

__all__ = ["ALONE", "DROPOUT", "HEADS", "NETWORK", "Processes", "find_processes", "seeded"]

Result = TypeVar("Result")

TIMEOUT = timedelta(hours=24)  # others wait while one process computes a teacher's vectors


@dataclass(frozen=True, slots=True)
class Processes:
    """This process, and the number of processes that train together."""

    rank: int = 0
    count: int = 1
    device: str = "cpu"

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def share(self, lengths: Ids) -> Ids:
        """The indices of the texts that this process encodes; ``lengths`` are their token counts.

        >>> Processes(rank=1, count=2).share(np.array([5, 9, 7, 3]))
        array([0, 2])
        """
        # Assign longest first, in alternating directions, so that all processes get about as many tokens.
        order = np.argsort(-lengths, kind="stable")
        turn = np.arange(len(order)) % (2 * self.count)
        return np.sort(order[np.minimum(turn, 2 * self.count - 1 - turn) == self.rank])

    def gather(self, mine: Tensor, indices: Ids, n: int) -> Tensor:
        """The vectors of all processes, ``(n, width)``; gradients flow to ``mine``, at ``indices``."""
        if self.count == 1:
            return mine
        index = torch.from_numpy(indices).to(mine.device)
        rows = mine.new_zeros(n, mine.shape[1])
        with torch.no_grad():
            rows[index] = mine.detach()
            distributed.all_reduce(rows)
        return rows.index_copy(0, index, mine)

    def add_gradients(self, parameters: Iterable[Any]) -> None:
        """Sum the gradients of all processes; each has those of its own texts."""
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        flat = torch.cat([_gradient(parameter).flatten() for parameter in trained])
        distributed.all_reduce(flat)
        for parameter, part in zip(trained, flat.split([p.numel() for p in trained]), strict=True):
            parameter.grad = part.view_as(parameter)

    def is_any(self, mine: bool) -> bool:
        """Whether ``mine`` is true in any process."""
        if self.count == 1:
            return mine
        total = torch.tensor([float(mine)], device=self.device)
        distributed.all_reduce(total)
        return bool(total.item() > 0)

    def first(self, work: Callable[[], Result]) -> Result:
        """Run ``work`` in the first process; all processes return its result or raise its error."""
        if self.count == 1:
            return work()
        shared: list[Any] = [None, None]  # result, error
        if self.is_first:
            try:
                shared[0] = work()
            except TwinvecError as error:
                shared[1] = error
        distributed.broadcast_object_list(shared, 0)
        if shared[1] is not None:
            raise shared[1]
        result: Result = shared[0]
        return result


ALONE = Processes()


def _gradient(parameter: Any) -> Tensor:  # noqa: ANN401 - a torch Parameter
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def find_processes(device: TrainDevice = "auto") -> Processes:
    """This process among those of its launcher (``accelerate launch``, ``torchrun``), or alone without a launcher."""
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError("torch finds no CUDA device.", hint="Use --device cpu.")
    has_cuda = torch.cuda.is_available() and device != "cpu"
    count, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if count == 1:
        return Processes(device="cuda" if has_cuda else "cpu")
    index = int(os.environ.get("LOCAL_RANK", rank))
    if has_cuda:
        torch.cuda.set_device(index)
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if has_cuda else "gloo", timeout=TIMEOUT)
    return Processes(rank, count, f"cuda:{index}" if has_cuda else "cpu")


HEADS, DROPOUT, NETWORK = 0, 1, 2  # the first number of a seed, so that all seeds differ


@contextmanager
def seeded(*numbers: int, device: str = "cpu") -> Iterator[None]:
    """Seed torch's random generator with these numbers, and restore its state at the end of the block.

    >>> with seeded(3, 1): first = torch.rand(1)
    >>> with seeded(3, 1): bool(first == torch.rand(1))
    True
    """
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
    with torch.random.fork_rng(devices=[] if torch.device(device).type == "cpu" else [torch.device(device)]):
        torch.manual_seed(seed)
        yield
