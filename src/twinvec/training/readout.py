"""The torch readout, from states to a vector: poolings, Dense, LayerNorm, Normalize, and SBERT-WK."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import normalize

from twinvec.engine.readout import dense_weights, norm_weights
from twinvec.engine.weights import read_weights
from twinvec.errors import UnknownNameError
from twinvec.model.folder import Dense, LayerNorm, Module, Normalize
from twinvec.wk import LEAST_COSINE, LEAST_NOVELTY, LEAST_PIVOT, LEAST_VARIANCE, WKSettings, layer_windows, window_table

__all__ = ["POOLERS", "DenseHead", "make_head", "wk_vectors", "write_head"]

Pooler = Callable[[Tensor, Tensor], Tensor]


def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Average the states of the real tokens.

    >>> mean_pool(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([[1, 1, 0]]))
    tensor([[2.]])
    """
    return _weighted_sum(states, mask) / _total(states, mask)


def mean_sqrt_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Sum the states of the real tokens, divided by the square root of their number."""
    return _weighted_sum(states, mask) / _total(states, mask).sqrt()


def weighted_mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Average the states of the real tokens with the weights 1, 2, 3, and so on."""
    weights = mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return _weighted_sum(states, weights) / _total(states, weights)


def max_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Take the largest value of each feature over the real tokens."""
    # Fill, do not multiply: a padded 0 would exceed real negative values.
    return states.masked_fill(~mask.bool().unsqueeze(-1), torch.finfo(states.dtype).min).amax(dim=1)


def first_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Take the state of the first real token."""
    return _states_at(states, mask.argmax(dim=1))


def last_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Take the state of the last real token."""
    return _states_at(states, (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(dim=1))


def _weighted_sum(states: Tensor, weights: Tensor) -> Tensor:
    # One matrix product instead of a masked copy of the states. Padding is finite and has weight 0.
    return (weights.to(states.dtype).unsqueeze(1) @ states).squeeze(1)


def _total(states: Tensor, weights: Tensor) -> Tensor:
    return weights.sum(dim=1, keepdim=True).clamp(min=1).to(states.dtype)


def _states_at(states: Tensor, indices: Tensor) -> Tensor:
    return states[torch.arange(len(states), device=states.device), indices]


POOLERS: dict[str, Pooler] = {
    "cls": first_pool,
    "max": max_pool,
    "mean": mean_pool,
    "mean_sqrt_len_tokens": mean_sqrt_pool,
    "weightedmean": weighted_mean_pool,
    "lasttoken": last_pool,
}


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "Sigmoid": nn.Sigmoid,
    "GELU": nn.GELU,
}


class DenseHead(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A linear layer and its activation, with the parameter names of the folder format."""

    def __init__(self, module: Dense) -> None:
        super().__init__()
        if module.activation not in ACTIVATIONS:
            raise UnknownNameError(f"activation in {module.folder}:", module.activation, ACTIVATIONS)
        self.linear = nn.Linear(module.n_in, module.n_out, bias=module.has_bias)
        self.activation = ACTIVATIONS[module.activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """``(texts, n_in)`` to ``(texts, n_out)``."""
        return self.activation(self.linear(vectors))


class NormHead(nn.Module):  # type: ignore[misc]
    """Layer normalization of the vector."""

    def __init__(self, module: LayerNorm) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(module.width)

    def forward(self, vectors: Tensor) -> Tensor:
        """``(texts, width)`` to the same."""
        return self.norm(vectors)


class UnitHead(nn.Module):  # type: ignore[misc]
    """Scaling to length 1."""

    def forward(self, vectors: Tensor) -> Tensor:
        """``(texts, width)`` to the same."""
        return normalize(vectors, dim=-1)


@singledispatch
def make_head(module: Module, *, trust_pickle: bool) -> nn.Module:
    """Load the torch module of a module of a model folder."""
    raise TypeError(f"no rule for {module!r}")


@make_head.register
def _(module: Dense, *, trust_pickle: bool) -> nn.Module:
    head = DenseHead(module)
    weight, bias = dense_weights(module, partial(read_weights, trust_pickle=trust_pickle))
    state = {"linear.weight": weight} | ({} if bias is None else {"linear.bias": bias})
    head.load_state_dict({name: torch.tensor(values) for name, values in state.items()})
    return head


@make_head.register
def _(module: LayerNorm, *, trust_pickle: bool) -> nn.Module:
    head = NormHead(module)
    scale, shift = norm_weights(module, partial(read_weights, trust_pickle=trust_pickle))
    head.load_state_dict({"norm.weight": torch.tensor(scale), "norm.bias": torch.tensor(shift)})
    return head


@make_head.register
def _(module: Normalize, *, trust_pickle: bool) -> nn.Module:
    return UnitHead()


def write_head(head: nn.Module, path: Path) -> None:
    """Write the weights of ``head`` to a module's folder."""
    state = {name: values.detach().cpu().contiguous() for name, values in head.state_dict().items()}
    if state:
        (path / "pytorch_model.bin").unlink(missing_ok=True)
        save_file(state, path / "model.safetensors", metadata={"format": "pt"})


def wk_vectors(layers: Tensor, mask: Tensor, settings: WKSettings) -> Tensor:
    """The SBERT-WK vectors: ``(layers + 1, texts, tokens, width), (texts, tokens) -> (texts, width)``."""
    states = layers[settings.start(len(layers) - 1) :]
    cosines = layer_cosines(states)
    weights = layer_weights(cosines, settings) * token_importance(cosines, read_tokens(mask, settings))
    return torch.einsum("lntw,lnt->nw", states, weights.to(states.dtype))


def layer_cosines(states: Tensor) -> Tensor:
    """Cosines between layers, per token: ``(layers, texts, tokens, width) -> (layers, layers, texts, tokens)``."""
    vectors = states.permute(1, 2, 0, 3).double()
    gram = (vectors @ vectors.transpose(-1, -2)).permute(2, 3, 0, 1)
    squares = gram.diagonal().permute(2, 0, 1)
    lengths = torch.where(squares > 0, squares, 1.0).sqrt()
    return gram / (lengths[:, None] * lengths[None, :])


def layer_weights(cosines: Tensor, settings: WKSettings) -> Tensor:
    """Combined layer weights: ``(layers, layers, texts, tokens) -> (layers, texts, tokens)``."""
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
    """Token weights: ``(layers, layers, texts, tokens), (texts, tokens) -> (texts, tokens)``."""
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
    """The mask of tokens to read, ``(texts, tokens)``: mode "reference" skips the last token of a longer text."""
    if settings.mode == "paper":
        return mask
    n_after = mask.flip(1).cumsum(dim=1).flip(1)
    return mask * ((n_after > 1) | (mask.sum(dim=1, keepdim=True) == 1))
