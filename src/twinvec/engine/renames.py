"""Every checkpoint's parameter names to ours, as ordered tables of rules.

Ours:
    embeddings.{word,position,type}.weight, embeddings.norm.*, embeddings.projection.*, relative.weight, final_norm.*
    blocks.N.{query,key,value,qkv,out,inner,outer}.*, blocks.N.{attention_norm,inner_norm}.*
"""

from __future__ import annotations

import re

__all__ = ["canonical_name"]

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
    """Our name of a checkpoint's parameter.

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
