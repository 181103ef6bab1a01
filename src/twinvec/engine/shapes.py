"""Name and shape of every parameter that a backbone's config calls for."""

from __future__ import annotations

from twinvec.engine.config import Backbone

__all__ = ["expected_shapes"]

Shapes = dict[str, tuple[int, ...]]


def expected_shapes(backbone: Backbone) -> Shapes:
    """All parameters under the names of ``renames.py``."""
    return _embedding_shapes(backbone) | (_modern_shapes if backbone.rotary else _layer_shapes)(backbone)


def _embedding_shapes(backbone: Backbone) -> Shapes:
    narrow = backbone.embedding_width
    shapes: Shapes = {"embeddings.word.weight": (backbone.n_vocabulary, narrow), "embeddings.norm.weight": (narrow,)}
    if backbone.rotary:
        return shapes
    shapes["embeddings.norm.bias"] = (narrow,)
    shapes["embeddings.position.weight"] = (backbone.n_positions + backbone.position_offset, narrow)
    if backbone.n_types:
        shapes["embeddings.type.weight"] = (backbone.n_types, narrow)
    if backbone.n_relative:
        shapes["relative.weight"] = (backbone.n_relative, backbone.n_heads)
    if narrow != backbone.width or backbone.family == "albert":  # ALBERT projects even to the same width
        shapes["embeddings.projection.weight"] = (backbone.width, narrow)
        shapes["embeddings.projection.bias"] = (backbone.width,)
    return shapes


def _layer_shapes(backbone: Backbone) -> Shapes:
    width, inner = backbone.width, backbone.n_inner
    linear = {name: (width, width) for name in ("query", "key", "value", "out")}
    linear |= {"inner": (inner, width), "outer": (width, inner)}
    shapes: Shapes = {}
    for block in range(backbone.n_blocks):
        for name, (n_out, n_in) in linear.items():
            shapes[f"blocks.{block}.{name}.weight"] = (n_out, n_in)
            shapes[f"blocks.{block}.{name}.bias"] = (n_out,)
        for norm in ("attention_norm", "inner_norm"):
            shapes[f"blocks.{block}.{norm}.weight"] = shapes[f"blocks.{block}.{norm}.bias"] = (width,)
    return shapes


def _modern_shapes(backbone: Backbone) -> Shapes:
    width, inner = backbone.width, backbone.n_inner
    shapes: Shapes = {"final_norm.weight": (width,)}
    for block in range(backbone.n_blocks):
        shapes |= {
            f"blocks.{block}.qkv.weight": (3 * width, width),
            f"blocks.{block}.out.weight": (width, width),
            f"blocks.{block}.inner.weight": (2 * inner, width),
            f"blocks.{block}.outer.weight": (width, inner),
            f"blocks.{block}.inner_norm.weight": (width,),
        }
        if block:  # the first layer reads the normed embeddings as they are
            shapes[f"blocks.{block}.attention_norm.weight"] = (width,)
    return shapes
