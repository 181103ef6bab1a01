"""Linear layers of an encoder: the part that differs between float32 and int8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from twinvec.engine.config import TORCH, Backbone
from twinvec.engine.graph import GraphBuilder
from twinvec.errors import UnknownNameError
from twinvec.types import Vectors

__all__ = [
    "ACTIVATIONS",
    "FloatLinear",
    "Linear",
    "Packing",
    "Stream",
    "add_norm",
    "add_packing",
    "add_product",
    "query_key_value",
]


@dataclass(frozen=True, slots=True)
class Stream:
    """The states between two layers: ``summed`` after the norm named ``norm``, or unchanged if it is None."""

    summed: str
    norm: str | None
    states: str


class Packing(NamedTuple):
    """Where the real tokens of a padded batch are.

    ``cells``, ``(real tokens,)``, are their cells in the flat grid of all tokens; ``sources``, ``(cells,)``, is the
    real token of every cell. A padded cell gets the real token before it: its attention is computed, and never read.
    """

    cells: str
    sources: str


def add_packing(graph: GraphBuilder, mask: str) -> Packing:
    """The packing of a grid whose ``mask`` is 1 on real tokens, the first among them."""
    flat = graph.add("Reshape", mask, graph.axes(-1))
    cells = graph.add("Squeeze", graph.add("NonZero", flat), graph.axes(0))
    one = graph.constant(1, np.int64)
    return Packing(cells, graph.add("Sub", graph.add("CumSum", flat, graph.constant(0, np.int64)), one))


class Linear(Protocol):
    """The linear layers of a backbone in a graph. Between them, states are rows: one per real token, no padding."""

    def enter(self, states: str) -> str:
        """Convert states ``(batch, tokens, width)`` to rows, ``(real tokens, width)``."""
        ...

    def leave(self, states: str) -> str:
        """Convert rows to states ``(batch, tokens, width)``; those of padding are arbitrary."""
        ...

    def along_tokens(self, rows: str) -> str:
        """Reshape rows ``(tokens, n)``, one per position, to multiply the results of :meth:`heads`."""
        ...

    def heads(self, stream: Stream, block: int) -> list[str]:
        """Queries (scaled), keys and values, each with the head width as last axis."""
        ...

    def attend(self, query: str, key: str, value: str, bias: str) -> str:
        """The attention result; ``bias``, broadcast to ``(batch, heads, tokens, tokens)``, is added to the scores."""
        ...

    def out(self, attended: str, block: int, residual: Stream) -> str:
        """The output layer of attention, plus the residual."""
        ...

    def inner(self, stream: Stream, block: int) -> str:
        """The inner layer of the feed-forward part, before its activation."""
        ...

    def activate(self, values: str) -> str:
        """The activation function."""
        ...

    def outer(self, inner: str, block: int, residual: Stream) -> str:
        """The outer layer of the feed-forward part, plus the residual."""
        ...


def _gelu_tanh(graph: GraphBuilder, values: str) -> str:
    return graph.add("Gelu", values, approximate="tanh")


def _swish(graph: GraphBuilder, values: str) -> str:
    return graph.add("Mul", values, graph.add("Sigmoid", values))


ACTIVATIONS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "gelu": lambda graph, values: graph.add("Gelu", values),
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "gelu_fast": _gelu_tanh,
    "relu": lambda graph, values: graph.add("Relu", values),
    "silu": _swish,
    "swish": _swish,
    "tanh": lambda graph, values: graph.add("Tanh", values),
}


def add_activation(graph: GraphBuilder, name: str, values: str) -> str:
    """Add the activation that a config names."""
    if name not in ACTIVATIONS:
        raise UnknownNameError("activation in config.json:", name, ACTIVATIONS, note=f"Or: {TORCH}")
    return ACTIVATIONS[name](graph, values)


def add_norm(graph: GraphBuilder, weights: Mapping[str, Vectors], states: str, name: str, epsilon: float) -> str:
    """Add layer normalization over the last axis, with the parameters ``name``."""
    inputs = [states, graph.weight(f"{name}.weight", weights[f"{name}.weight"])]
    if f"{name}.bias" in weights:
        inputs.append(graph.weight(f"{name}.bias", weights[f"{name}.bias"]))
    return graph.add("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)


def add_product(graph: GraphBuilder, states: str, name: str, weight: Vectors, bias: Vectors | None) -> str:
    """Add ``states @ weight.T + bias`` in float32; ``weight`` is ``(out, in)``, as in torch."""
    result = graph.add("MatMul", states, graph.weight(f"{name}.matrix", weight.T))
    return result if bias is None else graph.add("Add", result, graph.weight(f"{name}.bias", bias))


def query_key_value(
    weights: Mapping[str, Vectors], backbone: Backbone, block: int
) -> list[tuple[Vectors, Vectors | None]]:
    """Matrix ``(width, width)`` and bias of queries, keys and values; the queries include the attention scale."""
    prefix = f"blocks.{block}"
    if f"{prefix}.qkv.weight" in weights:
        parts: list[tuple[Vectors, Vectors | None]] = [
            (part, None) for part in np.split(np.asarray(weights[f"{prefix}.qkv.weight"]), 3)
        ]
    else:
        parts = [
            (weights[f"{prefix}.{name}.weight"], weights[f"{prefix}.{name}.bias"]) for name in ("query", "key", "value")
        ]
    scale = np.float32(1 / np.sqrt(backbone.head_width))
    matrix, bias = parts[0]
    return [(matrix * scale, None if bias is None else bias * scale), *parts[1:]]


@dataclass(frozen=True)
class FloatLinear:
    """Linear layers in float32, with operators that every runtime supports."""

    graph: GraphBuilder
    backbone: Backbone
    weights: Mapping[str, Vectors]

    @cached_property
    def _packing(self) -> Packing:
        return add_packing(self.graph, "mask")

    def padded(self, rows: str, *widths: int) -> str:
        """Rows with those of padding, ``(batch, tokens, *widths)``."""
        graph = self.graph
        shape = graph.add("Concat", graph.add("Shape", "ids"), graph.axes(*widths), axis=0)
        return graph.add("Reshape", graph.add("Gather", rows, self._packing.sources, axis=0), shape)

    def rows(self, states: str, width: int) -> str:
        """States ``(batch, tokens, ...)`` as rows of ``width``, without padding."""
        graph = self.graph
        return graph.add("Gather", graph.add("Reshape", states, graph.axes(-1, width)), self._packing.cells, axis=0)

    def enter(self, states: str) -> str:
        """Leave out padding; the tokens of a text stay together."""
        return self.rows(states, self.backbone.embedding_width)

    def leave(self, states: str) -> str:
        """Undo ``enter``."""
        return self.padded(states, self.backbone.width)

    def along_tokens(self, rows: str) -> str:
        """Return the rows unchanged."""
        return rows

    def heads(self, stream: Stream, block: int) -> list[str]:
        """One product and one transpose for all three: each ``(batch, heads, tokens, head width)``."""
        graph, backbone = self.graph, self.backbone
        parts = query_key_value(self.weights, backbone, block)
        weight = np.concatenate([matrix for matrix, _ in parts])
        biases = [bias for _, bias in parts if bias is not None]
        bias = np.concatenate(biases) if biases else None
        joined = add_product(graph, stream.states, f"blocks.{block}.qkv", weight, bias)
        joined = self.padded(joined, 3, backbone.n_heads, backbone.head_width)
        split = graph.add("Transpose", joined, perm=[2, 0, 3, 1, 4])
        thirds = graph.add_many("Split", split, n_outputs=3, axis=0, num_outputs=3)
        return [graph.add("Squeeze", third, graph.axes(0)) for third in thirds]

    def attend(self, query: str, key: str, value: str, bias: str) -> str:
        """Scaled dot-product attention, with the heads joined again, as rows."""
        graph = self.graph
        scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
        shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
        mixed = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.rows(mixed, self.backbone.width)

    def out(self, attended: str, block: int, residual: Stream) -> str:
        """Product plus residual."""
        return self.graph.add("Add", self._linear(attended, f"blocks.{block}.out"), residual.states)

    def inner(self, stream: Stream, block: int) -> str:
        """Product."""
        return self._linear(stream.states, f"blocks.{block}.inner")

    def activate(self, values: str) -> str:
        """The activation of the config."""
        return add_activation(self.graph, self.backbone.activation, values)

    def outer(self, inner: str, block: int, residual: Stream) -> str:
        """Product plus residual."""
        return self.graph.add("Add", self._linear(inner, f"blocks.{block}.outer"), residual.states)

    def _linear(self, states: str, name: str) -> str:
        return add_product(self.graph, states, name, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))
