"""The regression objective. Reimers & Gurevych (2019), section 3."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from twinvec.train.objectives.distances import cosine

__all__ = ["CosineObjective"]


class CosineObjective(nn.Module):  # type: ignore[misc]
    """``(cosine(u, v) - score)^2``, averaged."""

    examples: ClassVar[str] = "scored_pairs"

    def forward(self, text1: Tensor, text2: Tensor, score: Tensor) -> Tensor:
        """The mean loss. Vectors are ``(n, width)``, ``score`` is ``(n,)`` from 0 to 1."""
        return (cosine(text1, text2) - score).square().mean()
