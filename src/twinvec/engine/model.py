"""A model folder with its weights, and the graphs built from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Literal

from twinvec.engine.config import Backbone, read_backbone
from twinvec.engine.graph import Graph, GraphBuilder
from twinvec.engine.layers import LayerBuilder
from twinvec.engine.linear import FloatLinear, Linear
from twinvec.engine.readout import PICKS, add_readout, readout_width
from twinvec.engine.weights import (
    MappedFile,
    ReadWeights,
    backbone_weights,
    check_unchanged,
    forget_pages,
    mapped_files,
    read_weights,
    weight_files,
)
from twinvec.model.folder import WK, Dense, LayerNorm, ModelFolder, Pooling
from twinvec.types import Vectors

__all__ = ["Model", "build_heads", "build_readout", "read_model"]

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
        pick = PICKS.get(readout.modes[0]) if isinstance(readout, Pooling) and len(readout.modes) == 1 else None
        if pick is None or self.backbone.rotary is not None:
            return add_readout(builder, layers.all_states()[-1], self.folder.modules, self.read)
        return add_readout(builder, layers.picked_state(pick(builder)), self.folder.modules[1:], self.read)


def read_model(
    folder: ModelFolder, *, trust_pickle: bool = False, read: ReadWeights | None = None, has_types: bool = False
) -> Model:
    """Memory-map a folder's weights and check them against its config.

    ``read`` returns the weights of the modules after the backbone, if they do not have folders of their own.
    """
    backbone = read_backbone(folder.config)
    read = read or cache(partial(read_weights, trust_pickle=trust_pickle))
    source = (weight_files(folder.backbone) or [folder.backbone])[0]
    weights = backbone_weights(read_weights(folder.backbone, trust_pickle=trust_pickle), backbone, source)
    width = readout_width(folder.modules, backbone.width)
    heads = [read(module.folder).values() for module in folder.modules if isinstance(module, (Dense, LayerNorm))]
    files = mapped_files(chain(weights.values(), *heads))
    return Model(folder, backbone, weights, read, width, files, has_types)


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
