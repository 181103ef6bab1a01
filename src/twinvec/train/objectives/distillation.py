"""The distillation objective: give a text the vector that a teacher gives it.

Reimers & Gurevych (2020, arXiv 2004.09813), section 2, for the vectors. For the similarities inside a batch, Tung &
Mori (2019, arXiv 1907.09682), with cosines where they have dot products normalised by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.train.objectives.checks import at_least_zero, one_of, whole
from twinvec.train.objectives.distances import cosine_distance, cosine_matrix

__all__ = ["VECTOR_LOSSES", "DistillationObjective"]

VECTOR_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": F.mse_loss,
    "cosine": lambda vectors, target_vectors: cosine_distance(vectors, target_vectors).mean(),
}


class DistillationObjective(nn.Module):  # type: ignore[misc]
    """How far vectors are from the teacher's, plus ``similarity_weight`` times how far their cosines are.

    The first term is ``mse`` (mean over all numbers) or ``cosine`` (mean of ``1 - cosine``). Where the widths differ,
    it sees the vectors through a learned matrix, which is not part of the trained model. The second term is the mean
    squared difference of the two ``(n, n)`` cosine matrices of the batch; it needs no matrix at any width.
    """

    examples: ClassVar[str] = "texts"

    def __init__(self, width: int, teacher_width: int, loss: str = "mse", similarity_weight: float = 0.0) -> None:
        super().__init__()
        whole("width", width, least=1)
        whole("teacher_width", teacher_width, least=1)
        self.loss = one_of("loss", loss, VECTOR_LOSSES)
        self.similarity_weight = at_least_zero("similarity_weight", similarity_weight)
        self.projection = nn.Identity() if width == teacher_width else nn.Linear(width, teacher_width, bias=False)

    def forward(self, text: Tensor, target_vectors: Tensor) -> Tensor:
        """The mean loss. ``text`` is ``(n, width)``, ``target_vectors`` is ``(n, teacher_width)``."""
        loss = VECTOR_LOSSES[self.loss](self.projection(text), target_vectors)
        if self.similarity_weight:
            cosines, target_cosines = cosine_matrix(text, text), cosine_matrix(target_vectors, target_vectors)
            loss = loss + self.similarity_weight * F.mse_loss(cosines, target_cosines)
        return loss
