"""The readout as ONNX nodes: pooling, Dense, LayerNorm and Normalize turn states into one vector.

It is part of the graph, so that only vectors leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch
from pathlib import Path

import numpy as np

from twinvec.engine.graph import GraphBuilder
from twinvec.engine.weights import ReadWeights, Weights, check_array
from twinvec.errors import ModelFolderError, WeightsError, check_name
from twinvec.model.folder import Dense, LayerNorm, Module, Normalize, Pooling
from twinvec.types import Vectors

__all__ = ["PICKS", "add_codes", "add_readout", "readout_width"]

LOWEST = float(np.finfo(np.float32).min)


def _mask(graph: GraphBuilder) -> str:
    return graph.add("Cast", "pool_mask", to=1)


def _positions(graph: GraphBuilder) -> str:
    """1, 2, 3 ... for the tokens, in float32."""
    count = graph.add("Squeeze", graph.add("Shape", "pool_mask", start=1, end=2))
    one = graph.constant(1, np.int64)
    return graph.add("Cast", graph.add("Range", one, graph.add("Add", count, one), one), to=1)


def _weighted_sum(graph: GraphBuilder, states: str, weights: str) -> str:
    """``(batch, tokens)`` weights times ``(batch, tokens, width)`` states: ``(batch, width)``."""
    row = graph.add("Unsqueeze", weights, graph.axes(1))
    return graph.add("Squeeze", graph.add("MatMul", row, states), graph.axes(1))


def _total(graph: GraphBuilder, weights: str) -> str:
    total = graph.add("ReduceSum", weights, graph.axes(1), keepdims=1)
    return graph.add("Max", total, graph.constant(1.0))  # no division by zero if only the prompt is left


def _mean(graph: GraphBuilder, states: str) -> str:
    mask = _mask(graph)
    return graph.add("Div", _weighted_sum(graph, states, mask), _total(graph, mask))


def _mean_sqrt(graph: GraphBuilder, states: str) -> str:
    mask = _mask(graph)
    return graph.add("Div", _weighted_sum(graph, states, mask), graph.add("Sqrt", _total(graph, mask)))


def _weighted_mean(graph: GraphBuilder, states: str) -> str:
    weights = graph.add("Mul", _mask(graph), _positions(graph))
    return graph.add("Div", _weighted_sum(graph, states, weights), _total(graph, weights))


def _max(graph: GraphBuilder, states: str) -> str:
    is_real = graph.add("Unsqueeze", graph.add("Cast", "pool_mask", to=9), graph.axes(2))
    return graph.add(
        "ReduceMax", graph.add("Where", is_real, states, graph.constant(LOWEST)), graph.axes(1), keepdims=0
    )


def _highest(graph: GraphBuilder, order: str) -> str:
    """1 at the first token with the highest ``order``, 0 elsewhere; both ``(batch, tokens)``."""
    index = graph.add("Add", graph.add("ArgMax", order, axis=1, keepdims=1), graph.constant(1, np.int64))
    return graph.add("Cast", graph.add("Equal", graph.add("Cast", index, to=1), _positions(graph)), to=1)


def _is_first(graph: GraphBuilder) -> str:
    return _highest(graph, _mask(graph))


def _is_last(graph: GraphBuilder) -> str:
    return _highest(graph, graph.add("Mul", _mask(graph), _positions(graph)))


# Poolings that use one token: a mask ``(batch, tokens)``, 1 at that token.
PICKS: dict[str, Callable[[GraphBuilder], str]] = {"cls": _is_first, "lasttoken": _is_last}

POOLERS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "cls": lambda graph, states: _weighted_sum(graph, states, _is_first(graph)),
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
    "lasttoken": lambda graph, states: _weighted_sum(graph, states, _is_last(graph)),
}

# By torch class name.
ACTIVATIONS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "Identity": lambda graph, values: values,
    "Tanh": lambda graph, values: graph.add("Tanh", values),
    "ReLU": lambda graph, values: graph.add("Relu", values),
    "Sigmoid": lambda graph, values: graph.add("Sigmoid", values),
    "GELU": lambda graph, values: graph.add("Gelu", values),
}


@singledispatch
def add_module(module: Module, graph: GraphBuilder, values: str, read: ReadWeights, name: str) -> str:
    """Add a module of the readout; ``read`` returns the weights of a folder, ``name`` prefixes their names."""
    raise TypeError(f"no rule for {module!r}")


@add_module.register
def _(module: Pooling, graph: GraphBuilder, values: str, read: ReadWeights, name: str) -> str:
    pooled = [POOLERS[mode](graph, values) for mode in module.modes]
    return pooled[0] if len(pooled) == 1 else graph.add("Concat", *pooled, axis=-1)


@add_module.register
def _(module: Dense, graph: GraphBuilder, values: str, read: ReadWeights, name: str) -> str:
    check_name(f"activation in {module.folder}:", module.activation, ACTIVATIONS)
    weight, bias = dense_weights(module, read)
    product = graph.add("MatMul", values, graph.weight(f"{name}.matrix", weight.T))
    if bias is not None:
        product = graph.add("Add", product, graph.weight(f"{name}.bias", bias))
    return ACTIVATIONS[module.activation](graph, product)


@add_module.register
def _(module: LayerNorm, graph: GraphBuilder, values: str, read: ReadWeights, name: str) -> str:
    scale, shift = norm_weights(module, read)
    weights = graph.weight(f"{name}.weight", scale), graph.weight(f"{name}.bias", shift)
    return graph.add("LayerNormalization", values, *weights, axis=-1, epsilon=module.epsilon)


@add_module.register
def _(module: Normalize, graph: GraphBuilder, values: str, read: ReadWeights, name: str) -> str:
    squares = graph.add("ReduceSum", graph.add("Mul", values, values), graph.axes(-1), keepdims=1)
    return graph.add("Div", values, graph.add("Max", graph.add("Sqrt", squares), graph.constant(1e-12)))


def add_readout(graph: GraphBuilder, states: str, modules: tuple[Module, ...], read: ReadWeights) -> str:
    """Add all modules in order; returns the vectors, ``(batch, readout width)``."""
    for index, module in enumerate(modules):  # named by index: two folders may have the same name
        states = add_module(module, graph, states, read, f"readout.{index}")
    return states


def add_codes(graph: GraphBuilder, states: str, codes: Vectors, modules: tuple[Module, ...], read: ReadWeights) -> str:
    """Add the query side of a poly-encoder, and return one vector per code, joined: ``(batch, codes * width)``.

    Each of the ``codes``, ``(codes, width)``, attends to the states; ``modules`` are those after the pooling.
    """
    logits = graph.add("MatMul", states, graph.weight("codes", codes.T))
    is_real = graph.add("Unsqueeze", graph.add("Cast", "pool_mask", to=9), graph.axes(1))
    logits = graph.add("Where", is_real, graph.add("Transpose", logits, perm=[0, 2, 1]), graph.constant(LOWEST))
    vectors = graph.add("MatMul", graph.add("Softmax", logits, axis=-1), states)
    return graph.add("Reshape", add_readout(graph, vectors, modules, read), graph.axes(0, -1))


def readout_width(modules: tuple[Module, ...], width: int) -> int:
    """The width of the vectors that the modules compute from states of ``width``."""
    for module in modules:
        if isinstance(module, Pooling):
            width *= len(module.modes)
        elif isinstance(module, (Dense, LayerNorm)):
            expected = module.n_in if isinstance(module, Dense) else module.width
            if expected != width:
                raise ModelFolderError(f"{module.folder} expects vectors of width {expected}, but gets {width}.")
            width = module.n_out if isinstance(module, Dense) else width
    return width


def dense_weights(module: Dense, read: ReadWeights) -> tuple[Vectors, Vectors | None]:
    """Matrix ``(out, in)`` and bias ``(out,)`` of a Dense module."""
    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (module.n_out, module.n_in)}
    if module.has_bias:
        shapes["linear.bias"] = (module.n_out,)
    weights = _checked(read(module.folder), module.folder, shapes)
    return weights["linear.weight"], weights.get("linear.bias")


def norm_weights(module: LayerNorm, read: ReadWeights) -> tuple[Vectors, Vectors]:
    """Scale and shift, each ``(width,)``, of a LayerNorm module."""
    shapes = {"norm.weight": (module.width,), "norm.bias": (module.width,)}
    weights = _checked(read(module.folder), module.folder, shapes)
    return weights["norm.weight"], weights["norm.bias"]


def _checked(weights: Weights, folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Vectors]:
    checked = {}
    for name, shape in shapes.items():
        if name not in weights:
            raise WeightsError(f"{folder} lacks the parameter {name}.", hint="Download the model again.")
        checked[name] = np.asarray(weights[name], dtype=np.float32)
        check_array(checked[name], shape, f"{folder}: {name}")
    return checked
