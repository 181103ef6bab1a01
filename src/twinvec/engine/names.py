"""Parameter names and shapes: rename tables for checkpoint formats, and the shapes that a config requires."""

from __future__ import annotations

import re

from twinvec.engine.config import Backbone

__all__ = ["canonical_name", "expected_shapes"]

Rules = tuple[tuple[str, str], ...]

# Order matters: each rule sees the result of the ones above it.
SHARED: Rules = (
    (r"^(0\.auto_model|auto_model)\.", ""),
    (r"^(bert|roberta|electra|mpnet|distilbert|albert|model)\.", ""),
    (r"\.gamma$", ".weight"),
    (r"\.beta$", ".bias"),
    (r"^embeddings\.(word|position)_embeddings\.", r"embeddings.\1."),
    (r"^embeddings\.token_type_embeddings\.", "embeddings.type."),
    (r"^embeddings\.LayerNorm\.", "embeddings.norm."),
)

BERT: Rules = (
    (r"^embeddings_project\.", "embeddings.projection."),  # ELECTRA
    (r"^encoder\.layer\.", "blocks."),
    (r"\.attention\.self\.(query|key|value)\.", r".\1."),
    (r"\.attention\.output\.dense\.", ".out."),
    (r"\.attention\.output\.LayerNorm\.", ".attention_norm."),
    (r"\.intermediate\.dense\.", ".inner."),
    (r"\.output\.dense\.", ".outer."),
    (r"\.output\.LayerNorm\.", ".inner_norm."),
)

DISTILBERT: Rules = (
    (r"^transformer\.layer\.", "blocks."),
    (r"\.attention\.q_lin\.", ".query."),
    (r"\.attention\.k_lin\.", ".key."),
    (r"\.attention\.v_lin\.", ".value."),
    (r"\.attention\.out_lin\.", ".out."),
    (r"\.sa_layer_norm\.", ".attention_norm."),
    (r"\.ffn\.lin1\.", ".inner."),
    (r"\.ffn\.lin2\.", ".outer."),
    (r"\.output_layer_norm\.", ".inner_norm."),
)

MPNET: Rules = (
    (r"^encoder\.relative_attention_bias\.", "relative."),
    (r"\.attention\.attn\.q\.", ".attention.self.query."),
    (r"\.attention\.attn\.k\.", ".attention.self.key."),
    (r"\.attention\.attn\.v\.", ".attention.self.value."),
    (r"\.attention\.attn\.o\.", ".attention.output.dense."),
    (r"\.attention\.LayerNorm\.", ".attention.output.LayerNorm."),
    *BERT,
)

ALBERT: Rules = (
    (r"^encoder\.embedding_hidden_mapping_in\.", "embeddings.projection."),
    (r"\.attention\.(query|key|value)\.", r".\1."),
    (r"\.attention\.dense\.", ".out."),
    (r"\.attention\.LayerNorm\.", ".attention_norm."),
    (r"\.ffn\.", ".inner."),
    (r"\.ffn_output\.", ".outer."),
    (r"\.full_layer_layer_norm\.", ".inner_norm."),
)

MODERNBERT: Rules = (
    (r"^embeddings\.tok_embeddings\.", "embeddings.word."),
    (r"^layers\.", "blocks."),
    (r"\.attn\.Wqkv\.", ".qkv."),
    (r"\.attn\.Wo\.", ".out."),
    (r"\.attn_norm\.", ".attention_norm."),
    (r"\.mlp\.Wi\.", ".inner."),
    (r"\.mlp\.Wo\.", ".outer."),
    (r"\.mlp_norm\.", ".inner_norm."),
)

RULES: dict[str, Rules] = {
    "bert": BERT,
    "roberta": BERT,
    "electra": BERT,
    "distilbert": DISTILBERT,
    "mpnet": MPNET,
    "albert": ALBERT,
    "modernbert": MODERNBERT,
}


def canonical_name(name: str, family: str, *, blocks_per_group: int = 1) -> str:
    """Our name for a parameter of a checkpoint.

    >>> canonical_name("bert.encoder.layer.3.attention.self.query.weight", "bert")
    'blocks.3.query.weight'
    >>> canonical_name("albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.bias", "albert")
    'blocks.0.inner.bias'
    """
    for pattern, replacement in (*SHARED, *RULES[family]):
        name = re.sub(pattern, replacement, name)
    grouped = re.match(r"encoder\.albert_layer_groups\.(\d+)\.albert_layers\.(\d+)\.(.*)", name)
    if grouped:
        group, step, rest = grouped.groups()
        name = f"blocks.{int(group) * blocks_per_group + int(step)}.{rest}"
    return name


Shapes = dict[str, tuple[int, ...]]


def expected_shapes(backbone: Backbone) -> Shapes:
    """The shapes of all parameters of a backbone, by our names."""
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
        if block:  # not in the first layer, whose input is normalized
            shapes[f"blocks.{block}.attention_norm.weight"] = (width,)
    return shapes
