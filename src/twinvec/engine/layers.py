"""Encoder layers as ONNX nodes: embeddings, positions, masks and attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from twinvec.engine.config import Backbone, Rotary
from twinvec.engine.graph import GraphBuilder
from twinvec.engine.linear import FloatLinear, Linear, Stream, add_norm, add_product, query_key_value
from twinvec.types import Array, Ids, Vectors

__all__ = ["LayerBuilder"]


def attend_by_one(linear: FloatLinear, own: str, states: str, *, block: int, bias: str) -> str:
    """Attention of one token per text, ``own`` ``(batch, 1, width)``, over ``states``; the result has its shape.

    ``bias``, ``(batch, heads or 1, tokens)``, is added to the scores.
    """
    graph, backbone, name = linear.graph, linear.backbone, f"blocks.{block}"
    (query, query_shift), (key, _), (value, value_shift) = query_key_value(linear.weights, backbone, block)
    by_head = backbone.n_heads, backbone.head_width, backbone.width
    queries = add_product(graph, own, f"{name}.query", query, query_shift)
    queries = graph.add("Reshape", queries, graph.axes(0, backbone.n_heads, backbone.head_width))
    # The keys' bias is left out: it adds the same to every score of a head.
    queries = _product_by_head(graph, queries, graph.weight(f"{name}.key.by_head", key.reshape(by_head)))
    scores = graph.add("MatMul", queries, graph.add("Transpose", states, perm=[0, 2, 1]))
    shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
    mixed = graph.add("MatMul", shares, states)
    turned = value.reshape(by_head).transpose(0, 2, 1)
    mixed = _product_by_head(graph, mixed, graph.weight(f"{name}.value.by_head", turned))
    mixed = graph.add("Reshape", mixed, graph.axes(0, 1, backbone.width))
    return mixed if value_shift is None else graph.add("Add", mixed, graph.weight(f"{name}.value.bias", value_shift))


def _product_by_head(graph: GraphBuilder, values: str, matrices: str) -> str:
    """``(batch, heads, n)`` times ``(heads, n, m)``: ``(batch, heads, m)``."""
    product = graph.add("MatMul", graph.add("Transpose", values, perm=[1, 0, 2]), matrices)
    return graph.add("Transpose", product, perm=[1, 0, 2])


RELATIVE_BUCKETS = 32  # fixed in MPNet's code; a table may have more rows
HIDDEN = -1e30  # added to the scores of masked tokens; finite in bfloat16, too


@dataclass(frozen=True)
class LayerBuilder:
    """Adds the embeddings and layers of a backbone to a graph."""

    graph: GraphBuilder
    backbone: Backbone
    weights: Mapping[str, Vectors]
    linear: Linear
    has_types: bool = False  # if not, all tokens are of type 0

    def all_states(self) -> list[str]:
        """The states after the embeddings and after each layer."""
        bias, stream = self._bias(), self._embeddings()
        run_layer = self._modern_layer if self.backbone.rotary else self._layer
        states = [stream.states]
        for layer, blocks in enumerate(self.backbone.blocks):
            for block in blocks:
                stream = run_layer(stream, layer, block, bias)
            states.append(stream.states)
        if self.backbone.rotary:
            states[-1] = self._norm(states[-1], "final_norm")
        return [self.linear.leave(each) for each in states]

    def picked_state(self, picked: str) -> str:
        """The last layer's state of one token per text, ``(batch, width)``; ``picked`` is 1 at that token, else 0.

        The last layer is computed for these tokens only, which saves most of its time.
        """
        bias, stream = self._bias(), self._embeddings()
        *earlier, last = [(layer, block) for layer, blocks in enumerate(self.backbone.blocks) for block in blocks]
        for layer, block in earlier:
            stream = self._layer(stream, layer, block, bias)
        return self._picked_layer(stream, last[1], bias, self.graph.add("Unsqueeze", picked, self.graph.axes(1)))

    def _bias(self) -> str:
        """The bias added to attention scores before the softmax."""
        bias = self._mask_bias()
        return self.graph.add("Add", bias, self._relative_bias()) if self.backbone.n_relative else bias

    def _norm(self, states: str, name: str) -> str:
        return add_norm(self.graph, self.weights, states, name, self.backbone.epsilon)

    def _normed(self, summed: str, norm: str) -> Stream:
        return Stream(summed, norm, self._norm(summed, norm))

    def _n_tokens(self) -> str:
        """The number of tokens of the padded batch, ``(1,)``."""
        return self.graph.add("Shape", "ids", start=1, end=2)

    def _first_rows(self, table: str) -> str:
        """The rows of a table for the positions of the batch."""
        return self.graph.add("Slice", table, self.graph.axes(0), self._n_tokens(), self.graph.axes(0))

    def _embeddings(self) -> Stream:
        graph, backbone = self.graph, self.backbone
        states = graph.add(
            "Gather", graph.weight("embeddings.word.weight", self.weights["embeddings.word.weight"]), "ids"
        )
        if backbone.rotary is None:
            states = graph.add("Add", states, self._positions())
        if self.has_types:
            table = graph.weight("embeddings.type.weight", self.weights["embeddings.type.weight"])
            states = graph.add("Add", states, graph.add("Gather", table, "types"))
        stream = self._normed(self.linear.enter(states), "embeddings.norm")
        if "embeddings.projection.weight" in self.weights:
            name = "embeddings.projection"
            weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
            projected = add_product(graph, stream.states, name, weight, bias)
            return Stream(projected, None, projected)
        return stream

    def _positions(self) -> str:
        """Position embeddings: one row per position, or per token if literal padding tokens get no position."""
        graph, pad = self.graph, self.backbone.pad
        first = self.backbone.position_offset if pad is None else 0
        table = self.weights["embeddings.position.weight"][first:]
        if self.backbone.n_types and not self.has_types:  # all tokens are of type 0, so its row is added to the table
            table = table + self.weights["embeddings.type.weight"][0]
        rows = graph.weight("embeddings.positions", table)
        if pad is None:
            return self._first_rows(rows)
        is_counted = graph.add("Cast", graph.add("Equal", "ids", graph.constant(pad, np.int64)), to=7)
        is_counted = graph.add("Sub", graph.constant(1, np.int64), is_counted)
        number = graph.add("Mul", graph.add("CumSum", is_counted, graph.constant(1, np.int64)), is_counted)
        return graph.add("Gather", rows, graph.add("Add", number, graph.constant(pad, np.int64)))

    def _mask_bias(self) -> str:
        """0 on real tokens, a large negative number on padding: ``(batch, 1, 1, tokens)``."""
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
        buckets = relative_buckets(np.arange(-furthest, furthest + 1), RELATIVE_BUCKETS)
        table = graph.weight("relative.by_distance", self.weights["relative.weight"][buckets])
        bias = graph.add("Gather", table, self._distances(furthest))
        return graph.add("Unsqueeze", graph.add("Transpose", bias, perm=[2, 0, 1]), graph.axes(0))

    def _layer(self, stream: Stream, layer: int, block: int, bias: str) -> Stream:
        """A post-norm layer (BERT-like)."""
        linear = self.linear
        query, key, value = linear.heads(stream, block)
        attended = linear.attend(query, key, value, bias)
        stream = self._normed(linear.out(attended, block, stream), f"blocks.{block}.attention_norm")
        inner = linear.activate(linear.inner(stream, block))
        return self._normed(linear.outer(inner, block, stream), f"blocks.{block}.inner_norm")

    def _picked_layer(self, stream: Stream, block: int, bias: str, picked: str) -> str:
        """``_layer`` for the tokens that ``picked`` ``(batch, 1, tokens)`` marks, in float32: ``(batch, width)``."""
        graph, linear = self.graph, FloatLinear(self.graph, self.backbone, self.weights)
        states = self.linear.leave(stream.states)
        own = graph.add("MatMul", picked, states)
        attended = attend_by_one(linear, own, states, block=block, bias=self._picked_bias(bias, picked))
        summed = linear.out(attended, block, Stream(own, None, own))
        after = self._normed(summed, f"blocks.{block}.attention_norm")
        summed = linear.outer(linear.activate(linear.inner(after, block)), block, after)
        return graph.add("Squeeze", self._norm(summed, f"blocks.{block}.inner_norm"), graph.axes(1))

    def _picked_bias(self, bias: str, picked: str) -> str:
        """The rows of the attention bias for the picked tokens: ``(batch, heads or 1, tokens)``."""
        graph = self.graph
        if self.backbone.n_relative:
            bias = graph.add("MatMul", graph.add("Unsqueeze", picked, graph.axes(1)), bias)
        return graph.add("Squeeze", bias, graph.axes(2))

    def _modern_layer(self, stream: Stream, layer: int, block: int, bias: str) -> Stream:
        """A pre-norm layer with rotary positions and a gated feed-forward part (ModernBERT)."""
        graph, linear, rotary = self.graph, self.linear, self.backbone.rotary
        assert rotary is not None
        norm = f"blocks.{block}.attention_norm"
        has_norm = f"{norm}.weight" in self.weights  # not in the first layer, whose input is normalized
        query, key, value = linear.heads(self._normed(stream.states, norm) if has_norm else stream, block)
        query, key = self._rotate(query, rotary, layer), self._rotate(key, rotary, layer)
        attended = linear.attend(query, key, value, self._windowed(bias, rotary.window[layer]))
        summed = linear.out(attended, block, Stream(stream.states, None, stream.states))
        inner = linear.inner(self._normed(summed, f"blocks.{block}.inner_norm"), block)
        values, gate = graph.add_many("Split", inner, n_outputs=2, axis=-1, num_outputs=2)
        gated = graph.add("Mul", linear.activate(values), gate)
        summed = linear.outer(gated, block, Stream(summed, None, summed))
        return Stream(summed, None, summed)

    def _rotate(self, heads: str, rotary: Rotary, layer: int) -> str:
        """Rotate the two halves of each head by angles proportional to the position."""
        graph, theta, half = self.graph, rotary.theta[layer], self.backbone.head_width // 2
        rates = theta ** (-np.arange(half, dtype=np.float64) / half)
        angles = np.arange(self.backbone.n_positions, dtype=np.float64)[:, None] * rates
        cosines, sines = (
            self.linear.along_tokens(
                self._first_rows(graph.weight(f"rotary.{name}.{theta}", wave(angles).astype(np.float32)))
            )
            for name, wave in (("cos", np.cos), ("sin", np.sin))
        )
        left, right = graph.add_many("Split", heads, n_outputs=2, axis=-1, num_outputs=2)
        turned_left = graph.add("Sub", graph.add("Mul", left, cosines), graph.add("Mul", right, sines))
        turned_right = graph.add("Add", graph.add("Mul", right, cosines), graph.add("Mul", left, sines))
        return graph.add("Concat", turned_left, turned_right, axis=-1)

    def _windowed(self, bias: str, reach: int | None) -> str:
        """The mask bias, with tokens farther than ``reach`` masked, too."""
        if reach is None:
            return bias
        graph = self.graph
        is_far = graph.add("Greater", graph.add("Abs", self._distances(0)), graph.constant(reach, np.int64))
        far = graph.add("Mul", graph.add("Cast", is_far, to=1), graph.constant(HIDDEN))
        return graph.add("Add", bias, far)


def relative_buckets(distances: Ids, n_buckets: int, furthest: int = 128) -> Array:
    """The bucket of each distance (key minus query): exact for near ones, logarithmic for far ones (T5, MPNet).

    >>> relative_buckets(np.array([-3, 0, 3, 200]), 32).tolist()
    [3, 0, 19, 31]
    """
    half = n_buckets // 2
    size = np.abs(distances)
    near = half // 2
    # float32 and truncation as in the reference, so that buckets have the same edges
    steps = np.log(np.maximum(size, 1).astype(np.float32) / near) / np.float32(np.log(furthest / near))
    far = np.minimum(near + (steps * (half - near)).astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(size < near, size, far)
