"""How near two vectors are: the functions that all objectives share.

A vector of zeros has cosine 0 to everything. Lengths are held above ``SHORTEST``, as
``torch.nn.functional.cosine_similarity`` does, so value and gradient stay finite there.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

__all__ = ["DISTANCES", "cosine", "cosine_matrix", "euclidean", "manhattan"]

SHORTEST = 1e-8


def cosine(left: Tensor, right: Tensor) -> Tensor:
    """Cosine of row ``i`` with row ``i``: ``(n, width), (n, width) -> (n,)``.

    >>> import torch
    >>> cosine(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    return F.cosine_similarity(left, right, dim=-1, eps=SHORTEST)


def cosine_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Cosine of every row with every row: ``(n, width), (m, width) -> (n, m)``.

    >>> import torch
    >>> cosine_matrix(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0]])).tolist()
    [[0.0, 1.0]]
    """
    return F.normalize(left, dim=-1, eps=SHORTEST) @ F.normalize(right, dim=-1, eps=SHORTEST).T


def cosine_distance(left: Tensor, right: Tensor) -> Tensor:
    """``1 - cosine``, row by row: ``(n, width), (n, width) -> (n,)``. From 0 to 2."""
    return 1 - cosine(left, right)


def euclidean(left: Tensor, right: Tensor) -> Tensor:
    """Length of the difference, row by row: ``(n, width), (n, width) -> (n,)``.

    Where two rows are equal there is no gradient; torch's norm takes 0.
    """
    return (left - right).norm(dim=-1)


def manhattan(left: Tensor, right: Tensor) -> Tensor:
    """Sum of the absolute differences, row by row: ``(n, width), (n, width) -> (n,)``."""
    return (left - right).abs().sum(dim=-1)


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine_distance,
    "euclidean": euclidean,
    "manhattan": manhattan,
}
