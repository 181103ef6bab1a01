"""The triplet objective. Reimers & Gurevych (2019), section 3."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.train.objectives.checks import above_zero, one_of
from twinvec.train.objectives.distances import DISTANCES

__all__ = ["TripletObjective"]


class TripletObjective(nn.Module):  # type: ignore[misc]
    """``max(d(a, p) - d(a, n) + margin, 0)``, averaged. The paper's are Euclidean distance and margin 1."""

    examples: ClassVar[str] = "triplets"

    def __init__(self, margin: float = 1.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin = above_zero("margin", margin)
        self.distance = one_of("distance", distance, DISTANCES)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The mean loss. All three are ``(n, width)``."""
        distance = DISTANCES[self.distance]
        return F.relu(distance(anchor, positive) - distance(anchor, negative) + self.margin).mean()
