"""Attention of one token of each text to all of its tokens, at a cost that hardly grows with the text.

Keys and values of the tokens are never computed: the keys' matrix is applied to the one query, and the values' matrix
to the states after they were mixed. What a token costs falls from two products of (width, width) to two of
(width, heads).
"""

from __future__ import annotations

from twinvec.engine.graph import GraphBuilder
from twinvec.engine.linear import FloatLinear, add_product, query_key_value

__all__ = ["attend_by_one"]


def attend_by_one(linear: FloatLinear, own: str, states: str, *, block: int, bias: str) -> str:
    """What attention gives the tokens ``own``, ``(batch, 1, width)``, that look at ``states``; of the same shape.

    ``bias``, ``(batch, heads or 1, tokens)``, is added to the scores.
    """
    graph, backbone, name = linear.graph, linear.backbone, f"blocks.{block}"
    (query, query_shift), (key, _), (value, value_shift) = query_key_value(linear.weights, backbone, block)
    by_head = backbone.n_heads, backbone.head_width, backbone.width
    asked = add_product(graph, own, f"{name}.query", query, query_shift)
    asked = graph.add("Reshape", asked, graph.axes(0, backbone.n_heads, backbone.head_width))
    # The keys' bias is left out: it adds the same to every score of a head.
    asked = _product_by_head(graph, asked, graph.weight(f"{name}.key.by_head", key.reshape(by_head)))
    scores = graph.add("MatMul", asked, graph.add("Transpose", states, perm=[0, 2, 1]))
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
