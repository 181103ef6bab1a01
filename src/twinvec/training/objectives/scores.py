"""Objectives of cross-encoders, which compare the logits of pairs of texts.

Each example is one text with some candidates: the other text of a pair, the positive and the negative of a triplet, or
the positive among others. ``candidates`` names them, and ``forward`` takes their logits, ``(n, candidates, outputs)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.choices import ScoreActivation
from twinvec.training.objectives.common import whole
from twinvec.training.objectives.ranking import copies
from twinvec.types import Array, Ids

__all__ = [
    "BceObjective",
    "Candidates",
    "LabelObjective",
    "MarginObjective",
    "MseObjective",
    "RankedScoresObjective",
    "own_candidates",
]


class Candidates(NamedTuple):
    """Texts ``(n,)`` and their candidates ``(n, c)``, as numbers; ``is_copy`` ``(n, c)`` marks those to leave out."""

    first: Ids
    second: Ids
    is_copy: Array | None = None


def own_candidates(texts: Mapping[str, Ids]) -> Candidates:
    """The first text of each example with its other texts.

    >>> own_candidates({"anchor": np.array([5]), "positive": np.array([6]), "negative": np.array([7])}).second
    array([[6, 7]])
    """
    first, *others = texts.values()
    return Candidates(first, np.concatenate([each.reshape(len(first), -1) for each in others], axis=1))


class BceObjective(nn.Module):  # type: ignore[misc]
    """Binary cross-entropy of ``sigmoid(logit)`` with the score or mark, averaged."""

    examples: ClassVar[str] = "scored_pairs"
    activation: ClassVar[ScoreActivation | None] = "sigmoid"
    candidates = staticmethod(own_candidates)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean loss. ``logits`` are ``(n, 1, 1)``, ``target`` is ``(n,)`` from 0 to 1."""
        return F.binary_cross_entropy_with_logits(logits[:, 0, 0], target)


class MseObjective(nn.Module):  # type: ignore[misc]
    """``(logit - score)^2``, averaged."""

    examples: ClassVar[str] = "scored_pairs"
    activation: ClassVar[ScoreActivation | None] = "none"
    candidates = staticmethod(own_candidates)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean loss. ``logits`` are ``(n, 1, 1)``, ``target`` is ``(n,)`` from 0 to 1."""
        return F.mse_loss(logits[:, 0, 0], target)


class LabelObjective(nn.Module):  # type: ignore[misc]
    """Cross-entropy of ``softmax(logits)`` with the label."""

    examples: ClassVar[str] = "labelled_pairs"
    activation: ClassVar[ScoreActivation | None] = "none"
    candidates = staticmethod(own_candidates)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean loss. ``logits`` are ``(n, 1, labels)``, ``target`` is ``(n,)`` int64."""
        return F.cross_entropy(logits[:, 0], target)


class RankedScoresObjective(nn.Module):  # type: ignore[misc]
    """Cross-entropy of ``softmax(logits of the candidates)`` with the anchor's own positive.

    The candidates are the own positive, the own negatives, and the positives of the next ``in_batch`` examples in the
    batch. A cross-encoder runs once per candidate, so all positives of a batch would be too many.
    """

    examples: ClassVar[str] = "ranked"
    activation: ClassVar[ScoreActivation | None] = None  # only differences of logits matter

    def __init__(self, in_batch: int = 4) -> None:
        super().__init__()
        self.in_batch = whole("in_batch", in_batch, least=0)

    def candidates(self, texts: Mapping[str, Ids]) -> Candidates:
        """The candidates of each anchor, its own positive first; copies of right answers are marked."""
        anchor, positive = texts["anchor"], texts["positive"]
        negative = texts.get("negative")
        n, rows = len(anchor), np.arange(len(anchor))[:, None]
        every = positive if negative is None else np.concatenate([positive, negative.ravel()])
        n_own = 0 if negative is None else negative.shape[1]
        shifts = np.arange(1, min(self.in_batch, n - 1) + 1)
        # the columns of `copies`: all positives, then the negatives row by row
        columns = np.concatenate([rows, n + rows * n_own + np.arange(n_own), (rows + shifts) % n], axis=1)
        ids = (torch.from_numpy(each) for each in (anchor, positive, negative) if each is not None)
        return Candidates(anchor, every[columns], np.take_along_axis(copies(*ids).numpy(), columns, axis=1))

    def forward(self, logits: Tensor, is_copy: Tensor) -> Tensor:
        """The mean loss. ``logits`` are ``(n, candidates, 1)``, ``is_copy`` is ``(n, candidates)``, bool."""
        scores = logits[..., 0].masked_fill(is_copy, torch.finfo(logits.dtype).min)
        return F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long, device=scores.device))


class MarginObjective(nn.Module):  # type: ignore[misc]
    """``(logit of the positive - logit of the negative - margin)^2``, averaged.

    MarginMSE of Hofstätter et al. (2020, arXiv 2010.02666), section 4; the margin is that of a teacher.
    """

    examples: ClassVar[str] = "scored_triplets"
    activation: ClassVar[ScoreActivation | None] = "none"
    candidates = staticmethod(own_candidates)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean loss. ``logits`` are ``(n, 2, 1)``, ``target`` is ``(n,)``, the margins."""
        return F.mse_loss(logits[:, 0, 0] - logits[:, 1, 0], target)
