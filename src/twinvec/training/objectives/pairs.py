"""Objectives over pairs and triplets: softmax, cosine, triplet, CoSENT, contrastive, distillation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.choices import DEFAULT_FEATURES, DISTANCES, FEATURES, VECTOR_LOSSES
from twinvec.errors import InputError
from twinvec.training.objectives.common import (
    DISTANCE_FUNCTIONS,
    above_zero,
    at_least_zero,
    cosine,
    cosine_distance,
    cosine_matrix,
    names,
    one_of,
    whole,
)

__all__ = [
    "ContrastiveObjective",
    "CosentObjective",
    "CosineObjective",
    "DistillationObjective",
    "SoftmaxObjective",
    "TripletObjective",
]


class ContrastiveObjective(nn.Module):  # type: ignore[misc]
    """Half of ``d^2`` for pairs with label 1, of ``max(margin - d, 0)^2`` for label 0; averaged.

    The labels are reversed in the paper, where 0 means similar.
    """

    examples: ClassVar[str] = "marked_pairs"

    def __init__(self, margin: float = 0.5, distance: str = "cosine") -> None:
        super().__init__()
        self.margin = above_zero("margin", margin)
        self.distance = one_of("distance", distance, DISTANCES)

    def forward(self, text1: Tensor, text2: Tensor, label: Tensor) -> Tensor:
        """The mean loss. Vectors are ``(n, width)``, ``label`` is ``(n,)``: 1 for similar, 0 for dissimilar."""
        distance = DISTANCE_FUNCTIONS[self.distance](text1, text2)
        is_similar = label.to(distance.dtype)
        losses = is_similar * distance.square() + (1 - is_similar) * F.relu(self.margin - distance).square()
        return losses.mean() / 2


class CosentObjective(nn.Module):  # type: ignore[misc]
    """``log(1 + sum of exp(scale * (cosine_j - cosine_i)))`` over all ``i, j`` with ``score_i > score_j``.

    Only the order of the scores matters. A batch with equal scores has loss 0 and no gradient.
    """

    examples: ClassVar[str] = "scored_pairs"

    def __init__(self, scale: float = 20.0) -> None:
        super().__init__()
        self.scale = above_zero("scale", scale)

    def forward(self, text1: Tensor, text2: Tensor, score: Tensor) -> Tensor:
        """The loss of the whole batch. Vectors are ``(n, width)``, ``score`` is ``(n,)``."""
        cosines = self.scale * cosine(text1, text2)
        excess = cosines[None, :] - cosines[:, None]  # (i, j): above 0 if the pair is in the wrong order
        is_ordered = score[:, None] > score[None, :]
        exponents = excess.masked_fill(~is_ordered, torch.finfo(excess.dtype).min)
        return torch.cat([exponents.new_zeros(1), exponents.flatten()]).logsumexp(dim=0)  # exp(0) is the 1


class CosineObjective(nn.Module):  # type: ignore[misc]
    """``(cosine(u, v) - score)^2``, averaged."""

    examples: ClassVar[str] = "scored_pairs"

    def forward(self, text1: Tensor, text2: Tensor, score: Tensor) -> Tensor:
        """The mean loss. Vectors are ``(n, width)``, ``score`` is ``(n,)`` from 0 to 1."""
        return (cosine(text1, text2) - score).square().mean()


FEATURE_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "|u-v|": lambda u, v: (u - v).abs(),
    "u*v": lambda u, v: u * v,
}


class SoftmaxObjective(nn.Module):  # type: ignore[misc]
    """Cross-entropy of ``softmax(head(features of u and v))`` with the label.

    The features are concatenated in order. Like the authors' code, but unlike the paper's formula, the head has a bias.
    It is initialized from torch's random generator; seed that for a reproducible start.
    """

    examples: ClassVar[str] = "labelled_pairs"

    def __init__(self, width: int, n_labels: int, features: Sequence[str] = DEFAULT_FEATURES) -> None:
        super().__init__()
        self.features = names("features", features, FEATURES)
        n_inputs = len(self.features) * whole("width", width, least=1)
        self.head = nn.Linear(n_inputs, whole("n_labels", n_labels, least=2))

    def forward(self, premise: Tensor, hypothesis: Tensor, label: Tensor) -> Tensor:
        """The mean loss. Vectors are ``(n, width)``, ``label`` is ``(n,)`` int64 below ``n_labels``."""
        parts = [FEATURE_FUNCTIONS[name](premise, hypothesis) for name in self.features]
        return F.cross_entropy(self.head(torch.cat(parts, dim=-1)), label)


class TripletObjective(nn.Module):  # type: ignore[misc]
    """``max(d(a, p) - d(a, n) + margin, 0)``, averaged. The paper uses Euclidean distance and margin 1."""

    examples: ClassVar[str] = "triplets"

    def __init__(self, margin: float = 1.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin = above_zero("margin", margin)
        self.distance = one_of("distance", distance, DISTANCES)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The mean loss. All three are ``(n, width)``."""
        distance = DISTANCE_FUNCTIONS[self.distance]
        return F.relu(distance(anchor, positive) - distance(anchor, negative) + self.margin).mean()


LOSS_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": F.mse_loss,
    "cosine": lambda vectors, target_vectors: cosine_distance(vectors, target_vectors).mean(),
    "none": lambda vectors, _: vectors.new_zeros(()),
}


class DistillationObjective(nn.Module):  # type: ignore[misc]
    """The distance of vectors to each teacher's, and of the cosines in a batch to the teachers' cosines.

    The distance of vectors is ``mse`` (mean over all numbers) or ``cosine`` (mean of ``1 - cosine``), averaged over the
    teachers, or left out (``none``). For a teacher of another width, a learned matrix projects the vectors; it is not
    part of the trained model.

    The other terms compare the ``(n, n)`` cosines of the batch with the mean of the teachers' cosines, and need no
    projection. ``floors`` has the cosine of unrelated texts for each teacher: cosines are stretched so that this one
    becomes 0 and 1 stays 1. ``similarity_weight`` counts the mean squared difference, in which a pair of texts has the
    weight ``1 + focus * cosine``. ``ranking_weight`` counts how much the order of the other texts by their cosine with
    a text differs: the cross-entropy of ``softmax(scale * cosines)``.
    """

    examples: ClassVar[str] = "texts"

    def __init__(
        self,
        width: int,
        teacher_widths: Sequence[int],
        loss: str = "mse",
        similarity_weight: float = 0.0,
        *,
        floors: Sequence[float] = (),
        focus: float = 0.0,
        ranking_weight: float = 0.0,
        scale: float = 20.0,
    ) -> None:
        super().__init__()
        whole("width", width, least=1)
        if not teacher_widths:
            raise InputError("Distillation requires the width of at least one teacher.")
        self.teacher_widths = [whole("teacher_widths", each, least=1) for each in teacher_widths]
        self.loss = one_of("loss", loss, VECTOR_LOSSES)
        self.similarity_weight = at_least_zero("similarity_weight", similarity_weight)
        self.ranking_weight = at_least_zero("ranking_weight", ranking_weight)
        self.focus, self.scale = at_least_zero("focus", focus), above_zero("scale", scale)
        self.floors = _floors(floors, len(self.teacher_widths))
        if self.loss == "none" and not (self.similarity_weight or self.ranking_weight):
            raise InputError("Distillation with loss 'none' requires a similarity_weight or ranking_weight above 0.")
        self.projections = nn.ModuleList(
            nn.Identity() if each == width or self.loss == "none" else nn.Linear(width, each, bias=False)
            for each in self.teacher_widths
        )

    def forward(self, text: Tensor, target_vectors: Tensor) -> Tensor:
        """The mean loss. ``text`` is ``(n, width)``, ``target_vectors`` concatenates those of all teachers."""
        compare = LOSS_FUNCTIONS[self.loss]
        targets = target_vectors.split(self.teacher_widths, dim=-1)
        losses = [compare(project(text), target) for project, target in zip(self.projections, targets, strict=True)]
        loss = torch.stack(losses).mean()
        if self.similarity_weight or self.ranking_weight:
            cosines, wanted = cosine_matrix(text, text), self._wanted(targets)
            if self.similarity_weight:
                weights = 1 + self.focus * wanted.clamp(min=0)
                distance = (weights * (cosines - wanted).square()).sum() / weights.sum()
                loss = loss + self.similarity_weight * distance
            if self.ranking_weight and len(text) > 1:
                loss = loss + self.ranking_weight * _order_distance(self.scale * cosines, self.scale * wanted)
        return loss

    def _wanted(self, targets: Sequence[Tensor]) -> Tensor:
        """The mean of the teachers' stretched cosines, ``(n, n)``."""
        stretched = [
            (cosine_matrix(each, each) - floor) / (1 - floor) for each, floor in zip(targets, self.floors, strict=True)
        ]
        return torch.stack(stretched).mean(dim=0)


def _floors(floors: object, n_teachers: int) -> tuple[float, ...]:
    """One floor for each teacher, by default 0."""
    if not isinstance(floors, (list, tuple)) or len(floors) not in (0, n_teachers):
        raise InputError(
            f"floors must be a list of {n_teachers} numbers, one for each teacher, got {floors!r:.60}.",
            hint="Give the mean cosine of random texts for each teacher.",
        )
    found = tuple(at_least_zero("floors", each) for each in floors) or (0.0,) * n_teachers
    if max(found) >= 1:
        raise InputError(f"floors must be below 1, got {max(found):g}.")
    return found


def _order_distance(logits: Tensor, wanted: Tensor) -> Tensor:
    """The cross-entropy of the rows of ``logits`` with those of ``wanted``, both ``(n, n)``, without the diagonal."""
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    lowest = torch.finfo(logits.dtype).min
    shares = wanted.masked_fill(own, lowest).softmax(dim=-1)
    return -(shares * logits.masked_fill(own, lowest).log_softmax(dim=-1).masked_fill(own, 0.0)).sum(dim=-1).mean()
