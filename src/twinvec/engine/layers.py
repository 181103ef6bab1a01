"""The layers of the supported encoders, as ONNX nodes.

``states`` below are names of ``(batch, tokens, width)`` results. Weights come under the names of ``renames.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from twinvec.engine.config import Backbone, Rotary
from twinvec.engine.graph import GraphBuilder
from twinvec.errors import UnknownNameError
from twinvec.types import Vectors

__all__ = ["LayerBuilder", "Product", "float_product"]

HIDDEN = -1e30  # added to the scores of tokens that must not be seen; finite also as bfloat16


def _gelu(graph: GraphBuilder, values: str) -> str:
    return graph.add("Gelu", values)


def _gelu_tanh(graph: GraphBuilder, values: str) -> str:
    return graph.add("Gelu", values, approximate="tanh")


def _swish(graph: GraphBuilder, values: str) -> str:
    return graph.add("Mul", values, graph.add("Sigmoid", values))


ACTIVATIONS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "gelu": _gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "gelu_fast": _gelu_tanh,
    "relu": lambda graph, values: graph.add("Relu", values),
    "silu": _swish,
    "swish": _swish,
    "tanh": lambda graph, values: graph.add("Tanh", values),
}


# graph, states, name, weight (out, in) as torch stores it, bias -> states @ weight.T + bias
Product = Callable[[GraphBuilder, str, str, Vectors, Vectors | None], str]


def float_product(graph: GraphBuilder, states: str, name: str, weight: Vectors, bias: Vectors | None) -> str:
    """A linear layer in float32."""
    result = graph.add("MatMul", states, graph.weight(f"{name}.matrix", weight.T))
    return result if bias is None else graph.add("Add", result, graph.weight(f"{name}.bias", bias))


@dataclass(frozen=True)
class LayerBuilder:
    """Adds the embeddings and the layers of one backbone to a graph."""

    graph: GraphBuilder
    backbone: Backbone
    weights: Mapping[str, Vectors]
    product: Product

    def __post_init__(self) -> None:
        if self.backbone.activation not in ACTIVATIONS:
            raise UnknownNameError("activation in config.json:", self.backbone.activation, ACTIVATIONS)

    def all_states(self) -> list[str]:
        """States after the embeddings and after every layer."""
        bias = self._mask_bias()
        run_layer = self._modern_layer if self.backbone.rotary else self._layer
        states = [self._embeddings()]
        if self.backbone.n_relative:
            bias = self.graph.add("Add", bias, self._relative_bias())
        for layer, blocks in enumerate(self.backbone.blocks):
            current = states[-1]
            for block in blocks:
                current = run_layer(current, layer, block, bias)
            states.append(current)
        if self.backbone.rotary:
            states[-1] = self._norm(states[-1], "final_norm")
        return states

    def _weight(self, name: str) -> str:
        return self.graph.weight(name, self.weights[name])

    def _norm(self, states: str, name: str) -> str:
        inputs = [states, self._weight(f"{name}.weight")]
        if f"{name}.bias" in self.weights:
            inputs.append(self._weight(f"{name}.bias"))
        return self.graph.add("LayerNormalization", *inputs, axis=-1, epsilon=self.backbone.epsilon)

    def _linear(self, states: str, name: str) -> str:
        return self.product(self.graph, states, name, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def _n_tokens(self) -> str:
        """How many tokens wide the batch is, as a list of one number."""
        return self.graph.add("Shape", "ids", start=1, end=2)

    def _first_rows(self, table: str) -> str:
        """The rows of a table for as many positions as the batch has."""
        return self.graph.add("Slice", table, self.graph.axes(0), self._n_tokens(), self.graph.axes(0))

    def _embeddings(self) -> str:
        graph, backbone = self.graph, self.backbone
        states = graph.add("Gather", self._weight("embeddings.word.weight"), "ids")
        if backbone.rotary is None:
            table = self.weights["embeddings.position.weight"][backbone.position_offset :]
            if backbone.n_types:  # single texts are all of type 0: its row goes into the table
                table = table + self.weights["embeddings.type.weight"][0]
            states = graph.add("Add", states, self._first_rows(graph.weight("embeddings.positions", table)))
        states = self._norm(states, "embeddings.norm")
        if "embeddings.projection.weight" in self.weights:
            states = self._linear(states, "embeddings.projection")
        return states

    def _mask_bias(self) -> str:
        """0 on real tokens, very low on padding: ``(batch, 1, 1, tokens)``."""
        graph = self.graph
        mask = graph.add("Cast", "mask", to=1)
        hidden = graph.add("Mul", graph.add("Sub", graph.constant(1.0), mask), graph.constant(HIDDEN))
        return graph.add("Unsqueeze", hidden, graph.axes(1, 2))

    def _distances(self, furthest: int) -> str:
        """``key position - query position + furthest``, ``(tokens, tokens)``."""
        graph = self.graph
        count = graph.add("Squeeze", self._n_tokens())
        positions = graph.add("Range", graph.constant(0, np.int64), count, graph.constant(1, np.int64))
        columns = graph.add("Add", positions, graph.constant(furthest, np.int64))
        return graph.add("Sub", columns, graph.add("Unsqueeze", positions, graph.axes(1)))

    def _relative_bias(self) -> str:
        """MPNet's learned bias by distance: ``(1, heads, tokens, tokens)``."""
        graph, furthest = self.graph, self.backbone.n_positions
        buckets = relative_buckets(np.arange(-furthest, furthest + 1), self.backbone.n_relative)
        table = graph.weight("relative.by_distance", self.weights["relative.weight"][buckets])
        bias = graph.add("Gather", table, self._distances(furthest))
        return graph.add("Unsqueeze", graph.add("Transpose", bias, perm=[2, 0, 1]), graph.axes(0))

    def _heads(self, joined: str) -> list[str]:
        """Queries, keys and values, each ``(batch, heads, tokens, head width)``, of their joined product."""
        graph, backbone = self.graph, self.backbone
        shape = graph.axes(0, 0, 3, backbone.n_heads, backbone.head_width)
        split = graph.add("Transpose", graph.add("Reshape", joined, shape), perm=[2, 0, 3, 1, 4])
        parts = graph.add_many("Split", split, n_outputs=3, axis=0, num_outputs=3)
        return [graph.add("Squeeze", part, graph.axes(0)) for part in parts]

    def _attend(self, query: str, key: str, value: str, bias: str) -> str:
        """Attention over all heads; queries come scaled already. Gives ``(batch, tokens, width)``."""
        graph = self.graph
        scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
        shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
        mixed = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return graph.add("Reshape", mixed, graph.axes(0, 0, self.backbone.width))

    def _joined(self, states: str, block: int) -> str:
        """Queries (scaled), keys and values by one product, ``(batch, tokens, 3 width)``."""
        prefix = f"blocks.{block}"
        scale = np.float32(1 / np.sqrt(self.backbone.head_width))
        if f"{prefix}.qkv.weight" in self.weights:
            weight = self.weights[f"{prefix}.qkv.weight"].copy()
            weight[: self.backbone.width] *= scale
            return self.product(self.graph, states, f"{prefix}.qkv", weight, None)
        parts = [(f"{prefix}.{name}", scale if name == "query" else 1) for name in ("query", "key", "value")]
        weight = np.concatenate([self.weights[f"{name}.weight"] * factor for name, factor in parts])
        bias = np.concatenate([self.weights[f"{name}.bias"] * factor for name, factor in parts])
        return self.product(self.graph, states, f"{prefix}.qkv", weight, bias)

    def _layer(self, states: str, layer: int, block: int, bias: str) -> str:
        """A layer whose norms follow the sums (BERT and its kin)."""
        graph, prefix = self.graph, f"blocks.{block}"
        attended = self._attend(*self._heads(self._joined(states, block)), bias)
        summed = graph.add("Add", self._linear(attended, f"{prefix}.out"), states)
        states = self._norm(summed, f"{prefix}.attention_norm")
        inner = ACTIVATIONS[self.backbone.activation](graph, self._linear(states, f"{prefix}.inner"))
        summed = graph.add("Add", self._linear(inner, f"{prefix}.outer"), states)
        return self._norm(summed, f"{prefix}.inner_norm")

    def _modern_layer(self, states: str, layer: int, block: int, bias: str) -> str:
        """A layer whose norms stand before its parts, with rotary positions and a gated inner part (ModernBERT)."""
        graph, prefix, rotary = self.graph, f"blocks.{block}", self.backbone.rotary
        assert rotary is not None
        has_norm = f"{prefix}.attention_norm.weight" in self.weights
        normed = self._norm(states, f"{prefix}.attention_norm") if has_norm else states
        query, key, value = self._heads(self._joined(normed, block))
        query, key = self._rotate(query, rotary, layer), self._rotate(key, rotary, layer)
        attended = self._attend(query, key, value, self._windowed(bias, rotary.window[layer]))
        states = graph.add("Add", states, self._linear(attended, f"{prefix}.out"))
        normed = self._norm(states, f"{prefix}.inner_norm")
        inner, gate = graph.add_many(
            "Split", self._linear(normed, f"{prefix}.inner"), n_outputs=2, axis=-1, num_outputs=2
        )
        gated = graph.add("Mul", ACTIVATIONS[self.backbone.activation](graph, inner), gate)
        return graph.add("Add", states, self._linear(gated, f"{prefix}.outer"))

    def _rotate(self, heads: str, rotary: Rotary, layer: int) -> str:
        """Turn the two halves of every head by angles that grow with the position."""
        graph, theta, half = self.graph, rotary.theta[layer], self.backbone.head_width // 2
        rates = theta ** (-np.arange(half, dtype=np.float64) / half)
        angles = np.arange(self.backbone.n_positions, dtype=np.float64)[:, None] * rates
        cosines, sines = (
            self._first_rows(graph.weight(f"rotary.{name}.{theta}", wave(angles).astype(np.float32)))
            for name, wave in (("cos", np.cos), ("sin", np.sin))
        )
        left, right = graph.add_many("Split", heads, n_outputs=2, axis=-1, num_outputs=2)
        turned_left = graph.add("Sub", graph.add("Mul", left, cosines), graph.add("Mul", right, sines))
        turned_right = graph.add("Add", graph.add("Mul", right, cosines), graph.add("Mul", left, sines))
        return graph.add("Concat", turned_left, turned_right, axis=-1)

    def _windowed(self, bias: str, reach: int | None) -> str:
        """The mask's bias, with tokens further than ``reach`` hidden as well."""
        if reach is None:
            return bias
        graph = self.graph
        is_far = graph.add("Greater", graph.add("Abs", self._distances(0)), graph.constant(reach, np.int64))
        far = graph.add("Mul", graph.add("Cast", is_far, to=1), graph.constant(HIDDEN))
        return graph.add("Add", bias, far)


def relative_buckets(distances: np.ndarray, n_buckets: int, furthest: int = 128) -> np.ndarray:
    """The bucket of each distance (key minus query): near ones alone, far ones in logarithmic steps (T5, MPNet).

    >>> relative_buckets(np.array([-3, 0, 3, 200]), 32).tolist()
    [3, 0, 19, 31]
    """
    half = n_buckets // 2
    size = np.abs(distances)
    near = half // 2
    # float32 and truncation as in the reference: a bucket's edge must fall on the same distance
    steps = np.log(np.maximum(size, 1).astype(np.float32) / near) / np.float32(np.log(furthest / near))
    far = np.minimum(near + (steps * (half - near)).astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(size < near, size, far)
