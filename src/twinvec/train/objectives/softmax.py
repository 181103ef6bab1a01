"""The classification objective: a linear layer over what two vectors have in common. It exists in training only.

Reimers & Gurevych (2019), section 3; the choice of features is their Table 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.train.objectives.checks import names, whole

__all__ = ["FEATURES", "SoftmaxObjective"]

FEATURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "|u-v|": lambda u, v: (u - v).abs(),
    "u*v": lambda u, v: u * v,
}


class SoftmaxObjective(nn.Module):  # type: ignore[misc]
    """Cross-entropy of ``softmax(head(features of u and v))`` with the label.

    The features are joined in the order given. The head has a bias, which the paper's formula lacks, as has the
    authors' code. It starts from torch's random generator: seed that for a repeatable start.
    """

    examples: ClassVar[str] = "labelled_pairs"

    def __init__(self, width: int, n_labels: int, features: Sequence[str] = ("u", "v", "|u-v|")) -> None:
        super().__init__()
        self.features = names("features", features, FEATURES)
        n_inputs = len(self.features) * whole("width", width, least=1)
        self.head = nn.Linear(n_inputs, whole("n_labels", n_labels, least=2))

    def forward(self, premise: Tensor, hypothesis: Tensor, label: Tensor) -> Tensor:
        """The mean loss. Vectors are ``(n, width)``, ``label`` is ``(n,)`` int64 below ``n_labels``."""
        parts = [FEATURES[name](premise, hypothesis) for name in self.features]
        return F.cross_entropy(self.head(torch.cat(parts, dim=-1)), label)
