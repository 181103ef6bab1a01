"""Linear layers in int8, for onnxruntime: products of 8-bit integers, everything else in float32.

The result for a token depends only on that token and on constants, never on other texts of the batch:
- Inputs that come from a norm have a similar range for every token, so each channel has a fixed scale and offset
  from :mod:`calibration`; folded into a copy of the norm, they cost nothing.
- The results of attention and activation vary more, so each token has its own scale.
Scales move from inputs to weights channel by channel (SmoothQuant, Xiao et al. 2023, with exponent 0.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twinvec.engine.calibration import Ranges
from twinvec.engine.config import Backbone
from twinvec.engine.graph import MICROSOFT, GraphBuilder
from twinvec.engine.linear import Packing, Stream, add_activation, add_packing, query_key_value
from twinvec.types import Array, Vectors

__all__ = ["Int8Linear", "fold_contexts"]

SMOOTHING = 0.7
GELU_ZERO = 24  # of 0..255: gelu's lowest value is -0.17, so most of the range goes to positive values
GELU_LOWEST = 0.17


def quantize_columns(matrix: Array) -> tuple[Array, Vectors]:
    """Quantize weights ``(in, out)`` to int8 with one scale per column, so that integer products are exact.

    Without VNNI, the CPU adds the products of two neighboring rows in 16 bits: 255 times a pair's sum must stay within
    32767, so two weights of the same sign may sum to 128 at most. A scale chosen by the largest pair of a column is far
    finer than limiting all weights to 64.

    >>> quantize_columns(np.array([[1.0], [1.0], [-1.0], [0.5]]))[0].ravel().tolist()
    [64, 64, -64, 32]
    """
    if len(matrix) % 2:
        quantized, scale = quantize_columns(np.concatenate([matrix, np.zeros_like(matrix[:1])]))
        return quantized[:-1], scale
    even, odd = matrix[0::2], matrix[1::2]
    positive = np.maximum(even, 0) + np.maximum(odd, 0)
    negative = np.maximum(-even, 0) + np.maximum(-odd, 0)
    scale = np.maximum(np.maximum(positive.max(axis=0), negative.max(axis=0)) / 127, 1e-12).astype(np.float32)
    quantized = np.empty(matrix.shape, dtype=np.int8)
    first = np.clip(np.round(even / scale), -127, 127)
    lowest = np.maximum(-127, -128 - np.minimum(first, 0))
    highest = np.minimum(127, 128 - np.maximum(first, 0))
    quantized[0::2] = first
    quantized[1::2] = np.clip(np.round(odd / scale), lowest, highest)
    return quantized, scale


def smooth_scales(ranges: Ranges, matrix: Array) -> Array:
    """The quantization step of each input channel, ``(in,)``: wide ranges get wide steps, large weights narrow ones."""
    reach = np.maximum(ranges.high - ranges.low, 1e-3).astype(np.float64)
    size = np.maximum(np.sqrt((matrix**2).mean(axis=1)), 1e-6)
    scales = reach**SMOOTHING / size ** (1 - SMOOTHING)
    return np.asarray(scales * ((reach / scales).max() / 255))


def fold_contexts(weights: Mapping[str, Vectors], ranges: Mapping[str, Ranges]) -> dict[str, Vectors]:
    """Equivalent weights whose attention results are centered and evenly scaled; the output layer undoes it.

    Attention averages values, so shifting and scaling the value layer shifts and scales its result.
    """
    folded = dict(weights)
    for name, found in ranges.items():
        block, kind = name.rsplit(".", 1)
        if kind != "out" or f"{block}.value.weight" not in weights:
            continue
        out = weights[f"{block}.out.weight"].astype(np.float64)
        scales, center = smooth_scales(found, out.T) * 255, found.mean.astype(np.float64)
        value, bias = weights[f"{block}.value.weight"], weights[f"{block}.value.bias"]
        changed = {
            "value.weight": value / scales[:, None],
            "value.bias": (bias - center) / scales,
            "out.weight": out * scales,
            "out.bias": weights[f"{block}.out.bias"] + out @ center,
        }
        folded |= {f"{block}.{part}": array.astype(np.float32) for part, array in changed.items()}
    return folded


@dataclass(frozen=True)
class Int8Linear:
    """Linear layers in int8. ``weights`` are those of :func:`fold_contexts`."""

    graph: GraphBuilder
    backbone: Backbone
    weights: Mapping[str, Vectors]
    ranges: Mapping[str, Ranges]

    @cached_property
    def _packing(self) -> Packing:
        return add_packing(self.graph, self.graph.add("Transpose", "mask", perm=[1, 0]))

    def enter(self, states: str) -> str:
        """Leave out padding; the first tokens of all texts come first, so attention needs no transpose."""
        return self._rows(self.graph.add("Transpose", states, perm=[1, 0, 2]), self.backbone.embedding_width)

    def leave(self, states: str) -> str:
        """Undo ``enter``."""
        return self.graph.add("Transpose", self._padded(states, self.backbone.width), perm=[1, 0, 2])

    def along_tokens(self, rows: str) -> str:
        """Add axes for texts and heads."""
        return self.graph.add("Unsqueeze", rows, self.graph.axes(1, 2))

    def heads(self, stream: Stream, block: int) -> list[str]:
        """Three products, cheaper here than one and a split: each ``(tokens, batch, heads, head width)``."""
        backbone = self.backbone
        parts = query_key_value(self.weights, backbone, block)
        # Normalized before they share the scales of their common input.
        sizes = [matrix.astype(np.float64) for matrix, _ in parts]
        together = np.concatenate([matrix.T / np.sqrt((matrix**2).mean()) for matrix in sizes], axis=1)
        name = f"blocks.{block}.qkv"
        steps, center, values = self._read_norm(stream, name, together)
        heads = []
        for part, (matrix, bias) in zip(("query", "key", "value"), parts, strict=True):
            product = self._fixed_product(values, f"{name}.{part}", matrix, bias, (self.ranges[name], steps, center))
            heads.append(self._padded(product, backbone.n_heads, backbone.head_width))
        return heads

    def attend(self, query: str, key: str, value: str, bias: str) -> str:
        """Fused products that read the heads in place; only the result is transposed."""
        graph = self.graph
        scores = graph.add("FusedMatMul", query, key, domain=MICROSOFT, transB=1, transBatchA=1, transBatchB=1)
        shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
        mixed = graph.add("FusedMatMul", shares, value, domain=MICROSOFT, transBatchB=1)
        return self._rows(graph.add("Transpose", mixed, perm=[2, 0, 1, 3]), self.backbone.width)

    def inner(self, stream: Stream, block: int) -> str:
        """A product with fixed scales."""
        name = f"blocks.{block}.inner"
        matrix = self.weights[f"{name}.weight"]
        steps, center, values = self._read_norm(stream, name, matrix.T.astype(np.float64))
        bias = self.weights.get(f"{name}.bias")
        return self._fixed_product(values, name, matrix, bias, (self.ranges[name], steps, center))

    def activate(self, values: str) -> str:
        """The activation; gelu in its tanh form, whose error is far below that of 8 bits."""
        if self.backbone.activation == "gelu":
            return self.graph.add("FastGelu", values, domain=MICROSOFT)
        return add_activation(self.graph, self.backbone.activation, values)

    def out(self, attended: str, block: int, residual: Stream) -> str:
        """A product with one scale per token."""
        scales = self._symmetric_scales(attended)
        return self._own_product(attended, scales, 128, f"blocks.{block}.out", residual)

    def outer(self, inner: str, block: int, residual: Stream) -> str:
        """A product with one scale per token."""
        name = f"blocks.{block}.outer"
        is_gelu = self.backbone.activation.startswith("gelu") and self.backbone.rotary is None
        if not is_gelu:
            return self._own_product(inner, self._symmetric_scales(inner), 128, name, residual)
        graph = self.graph
        highest = graph.add("ReduceMax", inner, graph.axes(1), keepdims=1)
        scales = graph.add("Mul", highest, graph.constant(1 / (255 - GELU_ZERO)))
        scales = graph.add("Max", scales, graph.constant(GELU_LOWEST / GELU_ZERO))
        return self._own_product(inner, scales, GELU_ZERO, name, residual)

    def _rows(self, states: str, width: int) -> str:
        """States ``(tokens, batch, ...)`` as rows, without padding."""
        graph = self.graph
        return graph.add("Gather", graph.add("Reshape", states, graph.axes(-1, width)), self._packing.cells, axis=0)

    def _padded(self, rows: str, *widths: int) -> str:
        """Rows with those of padding, ``(tokens, batch, *widths)``."""
        graph = self.graph
        sizes = [graph.add("Shape", "ids", start=axis, end=axis + 1) for axis in (1, 0)]
        shape = graph.add("Concat", *sizes, graph.axes(*widths), axis=0)
        return graph.add("Reshape", graph.add("Gather", rows, self._packing.sources, axis=0), shape)

    def _read_norm(self, stream: Stream, name: str, matrix: Array) -> tuple[Array, Array, str]:
        """Steps and offsets of the channels, and the quantized input: uint8 ``(rows, width)``."""
        graph, ranges = self.graph, self.ranges[name]
        steps = smooth_scales(ranges, matrix)
        center = (ranges.low.astype(np.float64) + ranges.high) / 2 - 127.5 * steps
        if stream.norm is None:
            factor = graph.weight(f"{name}.steps", (1 / steps).astype(np.float32))
            shift = graph.weight(f"{name}.shift", (-center / steps).astype(np.float32))
            values = graph.add("Add", graph.add("Mul", stream.states, factor), shift)
        else:
            values = self._renormed(stream, name, 1 / steps, -center / steps)
        zero = graph.constant(0, np.uint8)
        return steps, center, graph.add("QuantizeLinear", values, graph.constant(1.0), zero)

    def _renormed(self, stream: Stream, name: str, factor: Array | float, shift: Array) -> str:
        """Repeat the stream's norm, with its result times ``factor`` plus ``shift``."""
        assert stream.norm is not None
        name = f"{name}.{stream.norm}"  # layers that share a block follow different norms
        scale = self.weights[f"{stream.norm}.weight"] * factor
        bias = self.weights.get(f"{stream.norm}.bias", np.zeros_like(scale)) * factor + shift
        inputs = [
            self.graph.weight(f"{name}.weight", scale.astype(np.float32)),
            self.graph.weight(f"{name}.bias", bias.astype(np.float32)),
        ]
        return self.graph.add("LayerNormalization", stream.summed, *inputs, axis=-1, epsilon=self.backbone.epsilon)

    def _fixed_product(
        self, values: str, name: str, matrix: Vectors, bias: Vectors | None, scales: tuple[Ranges, Array, Array]
    ) -> str:
        """The product of an input with fixed scales; unbiased on the calibration inputs."""
        ranges, steps, center = scales
        weight = matrix.T.astype(np.float64)
        quantized, column_scales = quantize_columns(weight * steps[:, None])
        mean = ranges.mean.astype(np.float64)
        correction = mean @ weight - ((mean - center) / steps) @ quantized.astype(np.float64) * column_scales
        shift = correction if bias is None else correction + bias
        return self._integer_product(values, name, (quantized, column_scales), shift=shift)

    def _integer_product(
        self, values: str, name: str, columns: tuple[Array, Vectors], *, zero: int = 0, shift: Array | None = None
    ) -> str:
        graph, (quantized, scales) = self.graph, columns
        inputs = [
            values,
            graph.weight(f"{name}.int8", quantized),
            graph.constant(1.0),
            graph.weight(f"{name}.scales", scales),
            graph.constant(zero, np.uint8),
        ]
        if shift is not None:
            inputs += ["", graph.weight(f"{name}.shift8", shift.astype(np.float32))]
        return graph.add("MatMulIntegerToFloat", *inputs, domain=MICROSOFT)

    def _symmetric_scales(self, rows: str) -> str:
        graph = self.graph
        highest = graph.add("ReduceMax", graph.add("Abs", rows), graph.axes(1), keepdims=1)
        return graph.add("Max", graph.add("Mul", highest, graph.constant(1 / 127)), graph.constant(1e-12))

    def _own_product(self, rows: str, scales: str, zero: int, name: str, residual: Stream) -> str:
        """The product of rows with one scale each, ``(rows, 1)``, plus bias and residual."""
        graph = self.graph
        weight = self.weights[f"{name}.weight"].T.astype(np.float64)
        columns = quantize_columns(weight)
        flat = graph.add("Squeeze", scales, graph.axes(1))
        zeros = graph.add("Expand", graph.constant(zero, np.uint8), graph.add("Shape", flat))
        product = self._integer_product(
            graph.add("QuantizeLinear", rows, flat, zeros, axis=0), name, columns, zero=zero
        )
        product = graph.add("Mul", product, scales)
        mean = self.ranges[name].mean.astype(np.float64) * (
            not name.endswith(".out")
        )  # there, fold_contexts removed it
        shift = mean @ weight - mean @ columns[0].astype(np.float64) * columns[1]
        if f"{name}.bias" in self.weights:
            shift = shift + self.weights[f"{name}.bias"]
        return graph.add("Add", product, self._shifted(residual, name, shift))

    def _shifted(self, residual: Stream, name: str, shift: Array) -> str:
        """The residual plus a constant, which its norm adds at no cost."""
        if residual.norm is None:
            constant = self.graph.weight(f"{name}.residual", shift.astype(np.float32))
            return self.graph.add("Add", residual.states, constant)
        return self._renormed(residual, f"{name}.residual", 1.0, shift)
