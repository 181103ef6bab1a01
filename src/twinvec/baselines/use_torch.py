"""The Universal Sentence Encoder in torch, for training (extra ``train``): read from a folder, and written to one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twinvec.baselines.use import read_use, write_use
from twinvec.choices import StoredPrecision
from twinvec.engine.batches import pad
from twinvec.engine.model import UseConfig
from twinvec.engine.use import TABLE
from twinvec.engine.weights import pack_int8, unpack_int8
from twinvec.extras import require
from twinvec.model.tokenizer import Tokenizer, check_texts
from twinvec.types import Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import layer_norm, linear, normalize
else:
    torch = require("torch", extra="train", feature="Training")
    nn = torch.nn
    layer_norm, linear, normalize = (getattr(nn.functional, name) for name in ("layer_norm", "linear", "normalize"))

__all__ = ["UseNetwork"]


class UseNetwork(nn.Module):  # type: ignore[misc] # torch is not typed here
    """The network of a folder. A parameter has the name that it has in ``model.safetensors``, with "_" for "."."""

    def __init__(self, weights: Mapping[str, Array], config: UseConfig, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config, self.tokenizer = config, tokenizer
        self.names = tuple(weights)
        for name, array in weights.items():
            parameter = nn.Parameter(torch.from_numpy(np.array(array, dtype=np.float32)))
            self.register_parameter(_attribute(name), parameter)

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> UseNetwork:
        """The network of a folder, in float32 however it is stored."""
        model = read_use(folder)
        return cls(unpack_int8(model.stored, source=model.path), model.config, model.tokenizer)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors, ``(batch, width)``, from ids and a mask, ``(batch, tokens)`` each; padding is on the right."""
        pieces = nn.functional.embedding(ids, self._of(TABLE))
        real = mask.to(pieces.dtype).unsqueeze(-1)
        grams = [self._ngram(order, states, real) for order, states in self._branches(pieces)]
        joined = self._norm(torch.cat([pieces, *grams], dim=-1), "join_norm", slice(None))
        counts = real.sum(dim=1)
        pooled = (self._linear(joined, "pool") * real).sum(dim=1) / counts.sqrt()
        first = self._linear(pooled, "hidden.0").relu()
        second = (self._linear(first, "hidden.1") + self._linear(pooled, "skip.1")).relu()
        third = self._linear(second, "hidden.2").relu()
        last = (self._linear(third, "hidden.3") + self._linear(second, "skip.3")).tanh()
        return normalize(last, dim=-1, eps=self.config.epsilon**0.5)

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, with those of its begin and end."""
        return [self.tokenizer.add_special_tokens(ids) for ids in self.tokenizer.ids(check_texts(texts))]

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Vectors of some texts as one batch, with their gradients."""
        batch, device = pad(self.rows(texts)), self._of(TABLE).device
        found: Tensor = self(torch.from_numpy(batch.ids).to(device), torch.from_numpy(batch.mask).to(device))
        return found

    def save(self, target: str | os.PathLike[str], *, precision: StoredPrecision = "float32") -> None:
        """Write a folder that :class:`~twinvec.baselines.use.UseEmbedder` and this class read."""
        weights = {name: self._of(name).detach().float().cpu().numpy() for name in self.names}
        write_use(target, self.config, pack_int8(weights) if precision == "int8" else weights, self.tokenizer.fast)

    def _of(self, name: str) -> Tensor:
        return getattr(self, _attribute(name))

    def _linear(self, values: Tensor, name: str) -> Tensor:
        bias = self._of(f"{name}.bias") if f"{name}.bias" in self.names else None
        return linear(values, self._of(f"{name}.weight"), bias)

    def _norm(self, states: Tensor, name: str, span: slice) -> Tensor:
        weight, bias = (self._of(f"{name}.{kind}")[span] for kind in ("weight", "bias"))
        return layer_norm(states, weight.shape, weight, bias, self.config.epsilon)

    def _branches(self, pieces: Tensor) -> list[tuple[int, Tensor]]:
        orders, states = self.config.orders, self._linear(pieces, "project")
        size = states.shape[-1] // len(orders)
        if self.config.norm == "joined":
            states = self._norm(states, "norm", slice(None))
        parts = list(states.split(size, dim=-1))
        if self.config.norm == "separate":
            parts = [self._norm(part, "norm", slice(i * size, (i + 1) * size)) for i, part in enumerate(parts)]
        return list(zip(orders, parts, strict=True))

    def _ngram(self, order: int, states: Tensor, real: Tensor) -> Tensor:
        left, n = (order - 1) // 2, states.shape[1]
        for step in (0, 1):
            padded = nn.functional.pad(states * real, (0, 0, left, order - 1 - left))
            windows = torch.cat([padded[:, start : start + n] for start in range(order)], dim=-1)
            states = self._linear(windows, f"ngram.{order}.{step}").relu() + states
        return states


def _attribute(name: str) -> str:
    return name.replace(".", "_")
