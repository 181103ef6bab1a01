"""Token states to one vector, in torch: the poolings of the folder format, as pure functions in a table.

``states`` is ``(texts, tokens, width)``, ``mask`` is ``(texts, tokens)``, 1 on real tokens; the result is
``(texts, width)``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["POOLERS"]

Pooler = Callable[[Tensor, Tensor], Tensor]


def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Average the states of the real tokens.

    >>> mean_pool(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([[1, 1, 0]]))
    tensor([[2.]])
    """
    return _weighted_sum(states, mask) / _total(states, mask)


def mean_sqrt_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Sum the states of the real tokens, over the square root of their number."""
    return _weighted_sum(states, mask) / _total(states, mask).sqrt()


def weighted_mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Average the states of the real tokens, the first with weight 1, the second with 2, and so on."""
    weights = mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return _weighted_sum(states, weights) / _total(states, weights)


def max_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Take the largest value of each feature over the real tokens."""
    # Fill, do not multiply: a padded 0 would win over real negative values.
    return states.masked_fill(~mask.bool().unsqueeze(-1), torch.finfo(states.dtype).min).amax(dim=1)


def first_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Take the state of the first real token."""
    return _chosen(states, mask.argmax(dim=1))


def last_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Take the state of the last real token."""
    return _chosen(states, (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(dim=1))


def _weighted_sum(states: Tensor, weights: Tensor) -> Tensor:
    # One product instead of a masked copy of the states. Padding has weight 0, and is finite.
    return (weights.to(states.dtype).unsqueeze(1) @ states).squeeze(1)


def _total(states: Tensor, weights: Tensor) -> Tensor:
    return weights.sum(dim=1, keepdim=True).clamp(min=1).to(states.dtype)


def _chosen(states: Tensor, places: Tensor) -> Tensor:
    return states[torch.arange(len(states), device=states.device), places]


POOLERS: dict[str, Pooler] = {
    "cls": first_pool,
    "max": max_pool,
    "mean": mean_pool,
    "mean_sqrt_len_tokens": mean_sqrt_pool,
    "weightedmean": weighted_mean_pool,
    "lasttoken": last_pool,
}
