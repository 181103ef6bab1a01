"""Models with their weights, and the graphs built from them: model folders, and the Universal Sentence Encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Literal, get_args

import numpy as np

from twinvec.engine.config import Backbone, read_backbone
from twinvec.engine.graph import Graph, GraphBuilder
from twinvec.engine.layers import LayerBuilder
from twinvec.engine.linear import FloatLinear, Linear
from twinvec.engine.readout import PICKS, add_codes, add_readout, readout_width
from twinvec.engine.weights import (
    SCALE,
    MappedFile,
    ReadWeights,
    backbone_weights,
    check_array,
    check_unchanged,
    forget_pages,
    mapped_files,
    read_weights,
    weight_files,
)
from twinvec.errors import check_name
from twinvec.model.folder import WK, Dense, LayerNorm, ModelFolder, Pooling
from twinvec.types import Array, Vectors

__all__ = ["Model", "UseConfig", "UseGraph", "UseNorm", "build_heads", "build_readout", "read_model"]

Output = Literal["vectors", "layers"]
MakeLinear = Callable[[GraphBuilder, Backbone, Mapping[str, Vectors]], Linear]


@dataclass(frozen=True)
class Model:
    """Backbone, weights and readout of a folder. Weights are views into the mapped files.

    All graphs use the files as first opened, even if they are replaced later.
    """

    folder: ModelFolder
    backbone: Backbone
    weights: Mapping[str, Vectors]
    read: ReadWeights  # reads the modules after the backbone; opens each file once
    width: int
    files: tuple[MappedFile, ...]  # the files behind all weights
    has_types: bool = False  # whether the graph has an input for token types, which tell the texts of a pair apart
    codes: Vectors | None = None  # of a poly-encoder: the graph computes the vectors of queries, one per code

    @property
    def output(self) -> Output:
        """The graph output from which vectors are computed."""
        return "layers" if isinstance(self.folder.readout, WK) else "vectors"

    def graph(self, output: Output = "vectors", linear: MakeLinear = FloatLinear) -> Graph:
        """The ONNX graph that computes vectors, or the states of all layers."""
        check_unchanged(self.files)
        try:
            return self._graph(output, linear)
        finally:  # a file that changed meanwhile would corrupt the graph
            check_unchanged(self.files)

    @property
    def inputs(self) -> list[str]:
        """The inputs of its graphs; a graph that computes vectors also has ``pool_mask``."""
        return ["ids", "mask", *(["types"] if self.has_types else [])]

    def layers(self, builder: GraphBuilder, linear: Linear) -> LayerBuilder:
        """The builder that adds its layers to a graph."""
        return LayerBuilder(builder, self.backbone, self.weights, linear, self.has_types)

    def _graph(self, output: Output, linear: MakeLinear) -> Graph:
        builder = GraphBuilder()
        layers = self.layers(builder, linear(builder, self.backbone, self.weights))
        if output == "vectors":
            vectors = self._vectors(builder, layers)
            forget_pages(self.weights.values())  # the layers use transposed copies
            return builder.build({"vectors": (vectors, ["batch", self.width])}, [*self.inputs, "pool_mask"])
        states = layers.all_states()
        forget_pages(self.weights.values())
        # Stacked inside the graph, without holding Python's GIL.
        stacked = builder.add("Concat", *(builder.add("Unsqueeze", name, builder.axes(0)) for name in states), axis=0)
        shape: list[str | int] = [len(states), "batch", "tokens", self.backbone.width]
        return builder.build({"layers": (stacked, shape)}, self.inputs)

    def _vectors(self, builder: GraphBuilder, layers: LayerBuilder) -> str:
        readout = self.folder.readout
        if self.codes is not None:
            return add_codes(builder, layers.all_states()[-1], self.codes, self.folder.modules[1:], self.read)
        pick = PICKS.get(readout.modes[0]) if isinstance(readout, Pooling) and len(readout.modes) == 1 else None
        if pick is None or self.backbone.rotary is not None:
            return add_readout(builder, layers.all_states()[-1], self.folder.modules, self.read)
        return add_readout(builder, layers.picked_state(pick(builder)), self.folder.modules[1:], self.read)


def read_model(
    folder: ModelFolder,
    *,
    trust_pickle: bool = False,
    read: ReadWeights | None = None,
    has_types: bool = False,
    codes: Vectors | None = None,
) -> Model:
    """Memory-map a folder's weights and check them against its config.

    ``read`` returns the weights of the modules after the backbone, if they do not have folders of their own. With the
    ``codes`` of a poly-encoder, the vectors are those of queries, ``codes * width`` wide.
    """
    backbone = read_backbone(folder.config)
    read = read or cache(partial(read_weights, trust_pickle=trust_pickle))
    source = (weight_files(folder.backbone) or [folder.backbone])[0]
    weights = backbone_weights(read_weights(folder.backbone, trust_pickle=trust_pickle), backbone, source)
    width = readout_width(folder.modules, backbone.width)
    if codes is not None:
        check_array(codes, (len(codes), backbone.width), f"{folder.path}: codes")
        width *= len(codes)
    heads = [read(module.folder).values() for module in folder.modules if isinstance(module, (Dense, LayerNorm))]
    files = mapped_files(chain(weights.values(), *heads))
    return Model(folder, backbone, weights, read, width, files, has_types, codes)


def build_readout(folder: ModelFolder, width: int, read: ReadWeights) -> Graph:
    """A graph of the readout only, from ``states`` ``(batch, tokens, width)`` to vectors."""
    builder = GraphBuilder()
    vectors = add_readout(builder, "states", folder.modules, read)
    shape: list[str | int] = ["batch", readout_width(folder.modules, width)]
    return builder.build({"vectors": (vectors, shape)}, ["pool_mask"], states_shape=["batch", "tokens", width])


def build_heads(folder: ModelFolder, width: int, read: ReadWeights) -> Graph:
    """A graph of the modules after the pooling, from pooled ``states`` ``(batch, width)`` to vectors."""
    builder = GraphBuilder()
    vectors = add_readout(builder, "states", folder.modules[1:], read)
    shape: list[str | int] = ["batch", readout_width(folder.modules, width)]
    return builder.build({"vectors": (vectors, shape)}, [], states_shape=["batch", width])


UseNorm = Literal["separate", "joined"]


@dataclass(frozen=True, slots=True)
class UseConfig:
    """What the weights of a Universal Sentence Encoder do not say.

    ``orders`` are the lengths of its n-grams. ``norm`` is "separate" if the projection for each of them is normalized
    by itself, as in the original graph, and "joined" if all are together.
    """

    orders: tuple[int, ...] = (2, 3, 5)
    norm: UseNorm = "separate"
    epsilon: float = 1e-12

    def __post_init__(self) -> None:
        check_name("norm", self.norm, get_args(UseNorm))


class UseGraph:
    """The Universal Sentence Encoder as a graph (Yang et al. 2019, the CNN). The table may be int8 with scales."""

    table = "embedding.weight"

    def __init__(self, weights: Mapping[str, Array], config: UseConfig) -> None:
        self.weights, self.config, self.graph = weights, config, GraphBuilder()

    def build(self) -> Graph:
        """The graph from ``ids`` and ``mask``, both ``(batch, tokens)``, to ``vectors``, ``(batch, width)``."""
        graph, width = self.graph, len(self.weights["hidden.3.weight"])
        mask = graph.add("Unsqueeze", graph.add("Cast", "mask", to=1), graph.axes(-1))
        pieces = self._pieces()
        grams = [self._ngram(order, states, mask) for order, states in self._branches(pieces)]
        joined = self._norm(graph.add("Concat", pieces, *grams, axis=-1), "join_norm", slice(None))
        # Summed first and projected then, which is the same and makes the product that much smaller.
        summed = graph.add("ReduceSum", graph.add("Mul", joined, mask), graph.axes(1), keepdims=0)
        count = graph.add("ReduceSum", mask, graph.axes(1), keepdims=0)
        bias = graph.add("Mul", count, graph.weight("pool.bias", self.weights["pool.bias"]))
        total = graph.add("Add", self._product(summed, "pool"), bias)
        vectors = self._feed_forward(graph.add("Div", total, graph.add("Sqrt", count)))
        return graph.build({"vectors": (vectors, ["batch", width])}, ["ids", "mask"])

    def _pieces(self) -> str:
        graph, table, scale = self.graph, self.weights[self.table], self.weights.get(self.table + SCALE)
        rows = graph.add("Gather", graph.weight(self.table, table), "ids")
        if scale is None:
            return rows
        factors = graph.weight(self.table + SCALE, np.asarray(scale, dtype=np.float32)[:, None])
        return graph.add("Mul", graph.add("Cast", rows, to=1), graph.add("Gather", factors, "ids"))

    def _branches(self, pieces: str) -> list[tuple[int, str]]:
        """For each length of n-grams the states that its convolutions start from."""
        orders, states = self.config.orders, self._with_bias(pieces, "project")
        size = len(self.weights["project.bias"]) // len(orders)
        if self.config.norm == "joined":
            states = self._norm(states, "norm", slice(None))
        sizes = self.graph.axes(*[size] * len(orders))
        parts = self.graph.add_many("Split", states, sizes, n_outputs=len(orders), axis=-1)
        if self.config.norm == "separate":
            spans = [slice(start, start + size) for start in range(0, size * len(orders), size)]
            parts = [self._norm(part, "norm", span) for part, span in zip(parts, spans, strict=True)]
        return list(zip(orders, parts, strict=True))

    def _norm(self, states: str, name: str, span: slice) -> str:
        named = (
            (f"{name}.{kind}.{span.start or 0}", self.weights[f"{name}.{kind}"][span]) for kind in ("weight", "bias")
        )
        inputs = [self.graph.weight(*each) for each in named]
        return self.graph.add("LayerNormalization", states, *inputs, axis=-1, epsilon=self.config.epsilon)

    def _ngram(self, order: int, states: str, mask: str) -> str:
        """Two residual convolutions; beyond the ends of a text there are zeros."""
        graph, left, last = self.graph, (order - 1) // 2, order - 1
        for step in (0, 1):
            padded = graph.add("Pad", graph.add("Mul", states, mask), graph.axes(0, left, 0, 0, last - left, 0))
            stops = [start - last or np.iinfo(np.int64).max for start in range(order)]
            spans = [(graph.axes(start), graph.axes(stop)) for start, stop in enumerate(stops)]
            windows = [graph.add("Slice", padded, start, stop, graph.axes(1)) for start, stop in spans]
            found = self._with_bias(graph.add("Concat", *windows, axis=-1), f"ngram.{order}.{step}")
            states = graph.add("Add", graph.add("Relu", found), states)
        return states

    def _feed_forward(self, pooled: str) -> str:
        graph = self.graph
        first = graph.add("Relu", self._product(pooled, "hidden.0"))
        second = graph.add("Relu", graph.add("Add", self._product(first, "hidden.1"), self._product(pooled, "skip.1")))
        third = graph.add("Relu", self._product(second, "hidden.2"))
        last = graph.add("Tanh", graph.add("Add", self._product(third, "hidden.3"), self._product(second, "skip.3")))
        squares = graph.add("ReduceSum", graph.add("Mul", last, last), graph.axes(1), keepdims=1)
        least = graph.constant(self.config.epsilon)
        return graph.add("Div", last, graph.add("Sqrt", graph.add("Max", squares, least)))

    def _product(self, values: str, name: str) -> str:
        matrix = np.ascontiguousarray(self.weights[f"{name}.weight"].T)
        return self.graph.add("MatMul", values, self.graph.weight(f"{name}.weight", matrix))

    def _with_bias(self, values: str, name: str) -> str:
        bias = self.graph.weight(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.graph.add("Add", self._product(values, name), bias)
