"""The loss of a batch and its gradients: each different text is encoded once, by one process, in one or several parts.

With ``cached_texts`` the batch may be larger than memory allows at once (gradient caching, Gao et al. 2021): vectors
are made without a graph, the loss gives a gradient for each vector, and a second pass over the texts, part by part,
carries it into the network. Dropout draws the same in both passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from twinvec.train.network import Network
from twinvec.train.processes import Processes
from twinvec.train.randomness import drawn_from
from twinvec.train.static_network import StaticNetwork
from twinvec.types import Ids

__all__ = ["EncodeTexts", "Part", "backward"]

LossOf = Callable[[Tensor], Tensor]  # of the vectors of all different texts, (texts, width)


@dataclass(frozen=True, slots=True)
class EncodeTexts:
    """How the texts of a batch become vectors."""

    network: Network | StaticNetwork
    processes: Processes
    cached_texts: int | None = None
    in_bfloat16: bool = False

    def vectors(self, rows: Sequence[Ids], draw: tuple[int, ...]) -> Tensor:
        """Vectors of some texts, ``(texts, width)``, in float32."""
        device = self.processes.device
        with (
            drawn_from(*draw, device=device),
            torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=self.in_bfloat16),
        ):
            vectors: Tensor = self.network(rows)
        return vectors


@dataclass(frozen=True, slots=True)
class Part:
    """Some of this process's texts: their places in the batch, and what dropout draws from."""

    places: slice
    draw: tuple[int, ...]


def backward(
    encode: EncodeTexts, rows: Sequence[Ids], loss_of: LossOf, *, draw: tuple[int, ...], scale: float
) -> float:
    """Add the gradients of ``scale`` times the loss to the network's and the objective's; returns the loss.

    ``rows`` are the ids of all different texts of the batch; ``draw`` names the step.
    """
    processes = encode.processes
    places = processes.share(np.array([len(row) for row in rows]))
    mine = [rows[i] for i in places]
    parts = list(_parts(len(mine), encode.cached_texts, (*draw, processes.rank)))
    with torch.set_grad_enabled(len(parts) == 1):
        none = torch.zeros(0, encode.network.width, device=processes.device)
        vectors = torch.cat([none, *(encode.vectors(mine[part.places], part.draw) for part in parts)])
    if len(parts) != 1:
        vectors.requires_grad_()
    loss = loss_of(processes.joint(vectors, places, len(rows)))
    (scale * loss).backward()
    if len(parts) > 1:
        for part in parts:
            encode.vectors(mine[part.places], part.draw).backward(vectors.grad[part.places])
    return float(loss.detach())


def _parts(n: int, size: int | None, draw: tuple[int, ...]) -> Iterator[Part]:
    size = size or max(n, 1)
    for number, start in enumerate(range(0, n, size)):
        yield Part(slice(start, start + size), (*draw, number))
