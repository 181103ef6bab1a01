"""What stands behind the pooling, in torch: Dense, LayerNorm, Normalize, with the weights of their folders."""

from __future__ import annotations

from functools import partial, singledispatch
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import normalize

from twinvec.engine.readout import dense_weights, norm_weights
from twinvec.engine.weights import read_weights
from twinvec.errors import UnknownNameError
from twinvec.model_folder import Dense, LayerNorm, Module, Normalize

__all__ = ["make_head", "write_head"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "Sigmoid": nn.Sigmoid,
    "GELU": nn.GELU,
}


class DenseHead(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A linear layer and its activation; parameters are named as in the folder format."""

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
    """Layer normalisation of the vector."""

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
    """The torch module of a module of a folder, with its weights."""
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


def write_head(head: nn.Module, place: Path) -> None:
    """Replace the weights in a module's folder by those of ``head``."""
    state = {name: values.detach().cpu().contiguous() for name, values in head.state_dict().items()}
    if state:
        (place / "pytorch_model.bin").unlink(missing_ok=True)
        save_file(state, place / "model.safetensors", metadata={"format": "pt"})
