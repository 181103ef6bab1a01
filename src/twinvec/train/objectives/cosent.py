"""The CoSENT objective: order the pairs of a batch by cosine as their scores order them.

Su (2022, kexue.fm/archives/8847); Huang et al. (2024, doi 10.1109/TASLP.2024.3402087).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from twinvec.train.objectives.checks import above_zero
from twinvec.train.objectives.distances import cosine

__all__ = ["CosentObjective"]


class CosentObjective(nn.Module):  # type: ignore[misc]
    """``log(1 + sum of exp(scale * (cosine_j - cosine_i)))`` over all ``i, j`` with ``score_i > score_j``.

    Only the order of the scores counts. A batch whose scores are all equal has loss 0 and no gradient.
    """

    examples: ClassVar[str] = "scored_pairs"

    def __init__(self, scale: float = 20.0) -> None:
        super().__init__()
        self.scale = above_zero("scale", scale)

    def forward(self, text1: Tensor, text2: Tensor, score: Tensor) -> Tensor:
        """The loss of the batch as a whole. Vectors are ``(n, width)``, ``score`` is ``(n,)``."""
        cosines = self.scale * cosine(text1, text2)
        excess = cosines[None, :] - cosines[:, None]  # (i, j): above 0 where the pair is in the wrong order
        is_ordered = score[:, None] > score[None, :]
        exponents = excess.masked_fill(~is_ordered, torch.finfo(excess.dtype).min)
        return torch.cat([exponents.new_zeros(1), exponents.flatten()]).logsumexp(dim=0)  # exp(0) is the 1
