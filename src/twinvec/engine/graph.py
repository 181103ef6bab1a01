"""A small builder of ONNX graphs with external weights.

The graph only names its weights; runtimes use the arrays directly from memory, so no weight is copied into the graph.
Torch is not involved.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from twinvec.types import Array

__all__ = ["Graph", "GraphBuilder", "set_location"]

OPSET = 20  # the first with Gelu
MICROSOFT = "com.microsoft"
WEIGHTS_FILE = "weights.bin"


@dataclass(frozen=True)
class Graph:
    """An ONNX graph and its weight arrays by name."""

    proto: onnx.ModelProto
    weights: dict[str, Array]

    def write(self, folder: Path) -> Path:
        """Write ``graph.onnx`` and its weights file to a folder; returns the path of the graph."""
        offset = 0
        locations = {}
        with (folder / WEIGHTS_FILE).open("wb") as handle:
            for name, array in self.weights.items():
                locations[name] = offset, array.nbytes
                handle.write(np.ascontiguousarray(array).data)
                offset += array.nbytes
                padding = -offset % 64  # runtimes map the file and need aligned tensors
                handle.write(bytes(padding))
                offset += padding
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        for tensor in proto.graph.initializer:
            if tensor.name in locations:
                set_location(tensor, WEIGHTS_FILE, *locations[tensor.name])
        path = folder / "graph.onnx"
        path.write_bytes(proto.SerializeToString())
        return path


class GraphBuilder:
    """Collects nodes and weights. Methods that add something return the name of the result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.weights: dict[str, Array] = {}
        self.constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:  # noqa: ANN401
        """Add a node with one result."""
        return self.add_many(operator, *inputs, n_outputs=1, domain=domain, **attributes)[0]

    def add_many(
        self,
        operator: str,
        *inputs: str,
        n_outputs: int,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401 - an ONNX attribute
    ) -> list[str]:
        """Add a node with several results."""
        results = [f"{operator.lower()}_{len(self.nodes)}_{i}" for i in range(n_outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), results, domain=domain, **attributes))
        return results

    def constant(self, value: object, dtype: type[np.generic] = np.float32) -> str:
        """Add a small constant inside the graph; equal constants are stored once."""
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = f"constant_{len(self.constants)}"
            self.initializers.append(numpy_helper.from_array(array, self.constants[key]))
        return self.constants[key]

    def axes(self, *values: int) -> str:
        """Add a constant list of axes or sizes."""
        return self.constant(values, np.int64)

    def weight(self, name: str, array: Array) -> str:
        """Add an external weight; adding the same name again reuses it."""
        if name in self.weights:
            assert np.array_equal(self.weights[name], array), f"two different weights called {name}"
        else:
            array = np.ascontiguousarray(array)
            self.weights[name] = array
            tensor = TensorProto(
                name=name,
                data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
                dims=array.shape,
                data_location=TensorProto.EXTERNAL,
            )
            tensor.external_data.add(key="location", value=WEIGHTS_FILE)
            self.initializers.append(tensor)
        return name

    def build(
        self,
        outputs: dict[str, tuple[str, list[str | int]]],
        inputs: list[str],
        *,
        states_shape: list[str | int] | None = None,
    ) -> Graph:
        """Build the graph. ``outputs`` maps the name of each output to its result and shape.

        With ``states_shape``, the graph also has an input ``states`` of that shape.
        """
        for name, (result, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [result], [name]))
        infos = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs]
        if states_shape:
            infos.append(helper.make_tensor_value_info("states", TensorProto.FLOAT, states_shape))
        results = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, (_, shape) in outputs.items()
        ]
        nodes, needed = _needed_nodes(self.nodes, set(outputs))
        initializers = [tensor for tensor in self.initializers if tensor.name in needed]
        graph = helper.make_graph(nodes, "twinvec", infos, results, initializers)
        weights = {name: array for name, array in self.weights.items() if name in needed}
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return Graph(helper.make_model(graph, opset_imports=opsets, ir_version=9), weights)


def _needed_nodes(nodes: list[onnx.NodeProto], outputs: set[str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """The nodes that the outputs need, in order, and all names they use: a runtime would run unused nodes too."""
    needed = set(outputs)
    kept = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    return kept[::-1], needed


def set_location(tensor: onnx.TensorProto, file: str, offset: int, length: int) -> None:
    """Set the file and offset of an external weight."""
    del tensor.external_data[:]
    for key, value in (("location", file), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
