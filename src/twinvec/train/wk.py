"""SBERT-WK in torch, to be trained through: the same numbers as ``twinvec.wk``, with gradients everywhere.

Where a weight falls back to equal shares, it has no gradient. Cosines and weights are float64, as there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from twinvec.wk import WKSettings, layer_windows, window_table
from twinvec.wk.weights import LEAST_COSINE, LEAST_NOVELTY, LEAST_PIVOT, LEAST_VARIANCE

__all__ = ["wk_vectors"]


def wk_vectors(layers: Tensor, mask: Tensor, settings: WKSettings) -> Tensor:
    """Vectors of texts: ``(layers + 1, texts, tokens, width), (texts, tokens) -> (texts, width)``."""
    states = layers[settings.start(len(layers) - 1) :]
    cosines = layer_cosines(states)
    weights = layer_weights(cosines, settings) * token_importance(cosines, read_tokens(mask, settings))
    return torch.einsum("lntw,lnt->nw", states, weights.to(states.dtype))


def layer_cosines(states: Tensor) -> Tensor:
    """Cosines between a token's layers: ``(layers, texts, tokens, width)`` to ``(layers, layers, texts, tokens)``."""
    vectors = states.permute(1, 2, 0, 3).double()
    gram = (vectors @ vectors.transpose(-1, -2)).permute(2, 3, 0, 1)
    squares = gram.diagonal().permute(2, 0, 1)
    lengths = torch.where(squares > 0, squares, 1.0).sqrt()
    return gram / (lengths[:, None] * lengths[None, :])


def layer_weights(cosines: Tensor, settings: WKSettings) -> Tensor:
    """Combined weights of the layers: ``(layers, layers, texts, tokens)`` to ``(layers, texts, tokens)``."""
    n_layers = len(cosines)
    windows = layer_windows(n_layers, settings)
    uniform = torch.full_like(cosines[0], 1 / n_layers)
    if not all(windows):
        return uniform
    outside = squared_novelty(cosines, windows)
    similarity = torch.stack([cosines[layer, window].mean(dim=0) for layer, window in enumerate(windows)])
    is_defined = (similarity > LEAST_COSINE).all(dim=0)
    likeness = torch.where(is_defined, similarity, 1.0)
    if settings.mode == "reference":
        sizes = torch.tensor([1.0 + len(window) for window in windows], device=cosines.device)
        likeness = sizes[:, None, None] * likeness / (1 - outside).clamp(min=LEAST_COSINE**2).sqrt()
    alignment = torch.where(is_defined, _shares(1 / likeness), uniform)
    is_outside = outside > 0
    novelty = torch.where(is_outside, torch.where(is_outside, outside, 1.0).sqrt(), 0.0)
    is_new = novelty.sum(dim=0) > LEAST_NOVELTY
    novelty = torch.where(is_new, _shares(torch.where(is_new, novelty, 1.0)), uniform)
    return settings.omega * alignment + (1 - settings.omega) * novelty


def _shares(values: Tensor) -> Tensor:
    return values / values.sum(dim=0)


def squared_novelty(cosines: Tensor, windows: list[list[int]]) -> Tensor:
    """The squared share of each layer's vector outside the span of its context: ``(layers, texts, tokens)``."""
    table, is_filled = (torch.from_numpy(each).to(cosines.device) for each in window_table(windows))
    systems = cosines[table[:, :, None], table[:, None, :]]  # (layers, size, size, texts, tokens)
    systems = systems * (is_filled[:, :, None] & is_filled[:, None, :])[:, :, :, None, None]
    for _ in range(table.shape[1] - 1):
        pivot, column = systems[:, 0, 0], systems[:, 1:, 0]
        share = column / torch.where(pivot > LEAST_PIVOT, pivot, torch.inf)[:, None]
        systems = systems[:, 1:, 1:] - share[:, :, None] * column[:, None, :]
    outside = systems[:, 0, 0].clamp(max=1)
    return torch.where(outside > LEAST_PIVOT, outside, 0.0)


def token_importance(cosines: Tensor, mask: Tensor) -> Tensor:
    """Weights of a text's tokens: ``(layers, layers, texts, tokens), (texts, tokens) -> (texts, tokens)``."""
    real = mask.to(cosines.dtype)
    moved = torch.zeros_like(real)
    if len(cosines) > 2:
        steps = torch.arange(len(cosines) - 1, device=cosines.device)
        moved = cosines[steps, steps + 1].var(dim=0, unbiased=False) * real
    is_moving = moved.sum(dim=1, keepdim=True) > LEAST_VARIANCE
    counted = torch.where(is_moving, moved, real)
    total = counted.sum(dim=1, keepdim=True)
    return counted / torch.where(total > 0, total, 1.0)


def read_tokens(mask: Tensor, settings: WKSettings) -> Tensor:
    """Which tokens of a mask ``(texts, tokens)`` are read: in mode "reference" not the last of several."""
    if settings.mode == "paper":
        return mask
    n_after = mask.flip(1).cumsum(dim=1).flip(1)
    return mask * ((n_after > 1) | (mask.sum(dim=1, keepdim=True) == 1))
