"""The distillation objective: give a text the vector that a teacher gives it.

Reimers & Gurevych (2020, arXiv 2004.09813), section 2, for the vectors. For the similarities inside a batch, Tung &
Mori (2019, arXiv 1907.09682), with cosines where they have dot products normalised by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.errors import InputError
from twinvec.train.objectives.checks import at_least_zero, one_of, whole
from twinvec.train.objectives.distances import cosine_distance, cosine_matrix

__all__ = ["VECTOR_LOSSES", "DistillationObjective"]

VECTOR_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": F.mse_loss,
    "cosine": lambda vectors, target_vectors: cosine_distance(vectors, target_vectors).mean(),
}


class DistillationObjective(nn.Module):  # type: ignore[misc]
    """How far vectors are from each teacher's, plus ``similarity_weight`` times how far their cosines are.

    The first term is ``mse`` (mean over all numbers) or ``cosine`` (mean of ``1 - cosine``), and the mean over the
    teachers. One of another width sees the vectors through a learned matrix, which is not part of the trained model.
    The second term is the mean squared difference of two ``(n, n)`` matrices of cosines in the batch, ours and the mean
    of the teachers'; it needs no matrix at any width.
    """

    examples: ClassVar[str] = "texts"

    def __init__(
        self, width: int, teacher_widths: Sequence[int], loss: str = "mse", similarity_weight: float = 0.0
    ) -> None:
        super().__init__()
        whole("width", width, least=1)
        if not teacher_widths:
            raise InputError("Distillation needs the width of at least one teacher.")
        self.teacher_widths = [whole("teacher_widths", each, least=1) for each in teacher_widths]
        self.loss = one_of("loss", loss, VECTOR_LOSSES)
        self.similarity_weight = at_least_zero("similarity_weight", similarity_weight)
        self.projections = nn.ModuleList(
            nn.Identity() if each == width else nn.Linear(width, each, bias=False) for each in self.teacher_widths
        )

    def forward(self, text: Tensor, target_vectors: Tensor) -> Tensor:
        """The mean loss. ``text`` is ``(n, width)``, ``target_vectors`` all teachers' side by side."""
        compare = VECTOR_LOSSES[self.loss]
        targets = target_vectors.split(self.teacher_widths, dim=-1)
        losses = [compare(project(text), target) for project, target in zip(self.projections, targets, strict=True)]
        loss = torch.stack(losses).mean()
        if self.similarity_weight:
            # Rows of several teachers are unit rows side by side, so that their cosines are the mean of theirs.
            cosines, target_cosines = cosine_matrix(text, text), cosine_matrix(target_vectors, target_vectors)
            loss = loss + self.similarity_weight * F.mse_loss(cosines, target_cosines)
        return loss
