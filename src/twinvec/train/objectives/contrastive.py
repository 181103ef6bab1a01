"""The contrastive objective. Hadsell, Chopra & LeCun (2006), equation 4."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.train.objectives.checks import above_zero, one_of
from twinvec.train.objectives.distances import DISTANCES

__all__ = ["ContrastiveObjective"]


class ContrastiveObjective(nn.Module):  # type: ignore[misc]
    """Half of ``d^2`` for pairs marked 1, of ``max(margin - d, 0)^2`` for pairs marked 0; averaged.

    The paper marks the other way round: there 0 is similar.
    """

    examples: ClassVar[str] = "marked_pairs"

    def __init__(self, margin: float = 0.5, distance: str = "cosine") -> None:
        super().__init__()
        self.margin = above_zero("margin", margin)
        self.distance = one_of("distance", distance, DISTANCES)

    def forward(self, text1: Tensor, text2: Tensor, label: Tensor) -> Tensor:
        """The mean loss. Vectors are ``(n, width)``, ``label`` is ``(n,)``: 1 for similar, 0 for not."""
        distance = DISTANCES[self.distance](text1, text2)
        is_similar = label.to(distance.dtype)
        losses = is_similar * distance.square() + (1 - is_similar) * F.relu(self.margin - distance).square()
        return losses.mean() / 2
