"""The ranking objective: find the anchor's own positive among all texts of the batch.

Henderson et al. (2017, arXiv 1705.00652), section 4.4, with scaled cosines as scores.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.training.objectives.common import above_zero, cosine_matrix, true_or_false

__all__ = ["PolyRankingObjective", "RankingObjective", "copies"]


class RankingObjective(nn.Module):  # type: ignore[misc]
    """Cross-entropy of ``softmax(scale * cosine(anchor, candidates))`` with the anchor's own positive.

    The candidates of every row are all ``n`` positives, then all ``n * k`` negatives, row by row: column ``j < n`` is
    the positive of row ``j``, column ``n + j * k + m`` the negative ``m`` of row ``j``.

    ``symmetric`` averages this with the other direction: for each positive, find its anchor among all anchors.
    """

    examples: ClassVar[str] = "ranked"

    def __init__(self, scale: float = 20.0, symmetric: bool = False) -> None:
        super().__init__()
        self.scale = above_zero("scale", scale)
        self.symmetric = true_or_false("symmetric", symmetric)

    def forward(
        self, anchor: Tensor, positive: Tensor, negative: Tensor | None = None, *, is_copy: Tensor | None = None
    ) -> Tensor:
        """The mean loss.

        ``anchor`` and ``positive`` are ``(n, width)``, ``negative`` is ``(n, k, width)``. ``is_copy``, bool and
        ``(n, n * (1 + k))``, marks the candidates to leave out (see ``copies``); a row's own positive always stays.
        """
        candidates = positive if negative is None else torch.cat([positive, negative.flatten(0, 1)])
        scores = self.scale * self.scores(anchor, candidates)
        if is_copy is not None:
            scores = scores.masked_fill(is_copy & ~_own(scores), torch.finfo(scores.dtype).min)
        loss = _diagonal_loss(scores)
        if self.symmetric:
            # A correct answer in one direction is also correct in the other, so the mask is transposed with the scores.
            loss = (loss + _diagonal_loss(scores[:, : len(anchor)].T)) / 2
        return loss

    def scores(self, anchor: Tensor, candidates: Tensor) -> Tensor:
        """The cosine of each anchor with each candidate: ``(n, width), (m, width) -> (n, m)``."""
        return cosine_matrix(anchor, candidates)


class PolyRankingObjective(RankingObjective):
    """The same by the scores of a poly-encoder (Humeau et al. 2020).

    A row is a text's vector as a candidate, ``width`` wide, then its vectors as a query. ``attention`` is the scale of
    a candidate's attention to the vectors of a query.
    """

    def __init__(self, width: int, attention: float, scale: float = 20.0, symmetric: bool = False) -> None:
        super().__init__(scale, symmetric)
        self.width, self.attention = width, attention

    def scores(self, anchor: Tensor, candidates: Tensor) -> Tensor:
        """The score of each anchor with each candidate: ``(n, all widths), (m, all widths) -> (n, m)``."""
        queries = anchor[:, self.width :].unflatten(-1, (-1, self.width))
        similarities = torch.einsum("ncw,mw->nmc", queries, candidates[:, : self.width])
        return (torch.softmax(self.attention * similarities, dim=-1) * similarities).sum(dim=-1)


def copies(anchor_ids: Tensor, positive_ids: Tensor, negative_ids: Tensor | None = None) -> Tensor:
    """The mask of candidates that are also correct answers: ``(n,), (n,), (n, k) -> (n, n * (1 + k))``, bool.

    Equal ids mean equal texts; the columns are those of ``RankingObjective``. It marks texts equal to the row's anchor
    or to a positive of that anchor: the row's own, or that of another row with the same anchor text. The column of a
    row's own positive is never marked.

    >>> copies(torch.tensor([7, 8, 7]), torch.tensor([1, 1, 2]), torch.tensor([[3], [7], [2]])).int()
    tensor([[0, 1, 1, 0, 1, 1],
            [1, 0, 0, 0, 0, 0],
            [1, 1, 0, 0, 1, 1]], dtype=torch.int32)
    """
    candidate_ids = positive_ids if negative_ids is None else torch.cat([positive_ids, negative_ids.flatten()])
    is_same_anchor = anchor_ids[:, None] == anchor_ids
    is_positive_of_row = positive_ids[:, None] == candidate_ids
    is_known_positive = is_positive_of_row
    if is_same_anchor.sum() > len(anchor_ids):  # a repeated anchor; otherwise skip the cubic product
        # float, because torch cannot multiply bool matrices; the product counts matching rows
        is_known_positive = is_same_anchor.float() @ is_positive_of_row.float() > 0
    is_right = is_known_positive | (anchor_ids[:, None] == candidate_ids)
    return is_right & ~_own(is_right)


def _own(table: Tensor) -> Tensor:
    """The mask of each row's own positive, in the shape of ``table``."""
    return torch.eye(*table.shape, dtype=torch.bool, device=table.device)


def _diagonal_loss(scores: Tensor) -> Tensor:
    """Cross-entropy of ``(n, m)`` scores where column ``i`` is the correct answer of row ``i``."""
    return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
