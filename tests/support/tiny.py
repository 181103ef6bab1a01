"""Write small model folders of every architecture with seeded random weights, without torch.

The parameter names and shapes are those of public checkpoints; the parity tests compare them with transformers.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = (  # noqa: SIM905
    "the a cat dog bird sits runs sleeps on in under mat tree house red blue small large is was and or not "
    "good bad man woman child reads writes book letter to from with of city river water rain sun moon happy sad old new"
).split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?'", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz0123456789")]
VOCABULARY = list(dict.fromkeys([*SPECIAL, *WORDS, *CHARACTERS]))
WIDTH, HEADS, INNER, LAYERS, POSITIONS = 32, 4, 64, 3, 40

COMMON = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "pad_token_id": 0,
}
ROBERTA = {**COMMON, "max_position_embeddings": POSITIONS + 2, "pad_token_id": 1, "type_vocab_size": 1}
FAMILIES: dict[str, dict[str, object]] = {
    "bert": {**COMMON, "model_type": "bert", "architectures": ["BertModel"]},
    "roberta": {**ROBERTA, "model_type": "roberta", "architectures": ["RobertaModel"]},
    "xlm-roberta": {**ROBERTA, "model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"]},
    "camembert": {**ROBERTA, "model_type": "camembert", "architectures": ["CamembertModel"]},
    "distilbert": {
        "model_type": "distilbert",
        "architectures": ["DistilBertModel"],
        "vocab_size": len(VOCABULARY),
        "dim": WIDTH,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "hidden_dim": INNER,
        "max_position_embeddings": POSITIONS,
        "activation": "gelu",
        "pad_token_id": 0,
    },
    "mpnet": {
        **ROBERTA,
        "model_type": "mpnet",
        "architectures": ["MPNetModel"],
        "relative_attention_num_buckets": 32,
        "layer_norm_eps": 1e-5,
    },
    "electra": {**COMMON, "model_type": "electra", "architectures": ["ElectraModel"], "embedding_size": 16},
    "albert": {
        **COMMON,
        "model_type": "albert",
        "architectures": ["AlbertModel"],
        "embedding_size": 16,
        "num_hidden_layers": 4,
        "num_hidden_groups": 2,
        "inner_group_num": 2,
        "hidden_act": "gelu_new",
    },
    "modernbert": {
        "model_type": "modernbert",
        "architectures": ["ModernBertModel"],
        "vocab_size": len(VOCABULARY),
        "hidden_size": WIDTH,
        "num_hidden_layers": 4,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "hidden_activation": "gelu",
        "norm_eps": 1e-5,
        "norm_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "global_attn_every_n_layers": 3,
        "local_attention": 8,
        "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0,
        "pad_token_id": 0,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "bos_token_id": 2,
        "eos_token_id": 3,
    },
}


def vocabulary(config: dict) -> dict[str, int]:
    """Token to id. RoBERTa and its relatives have the padding token at 1."""
    special, padding = list(SPECIAL), config["pad_token_id"]
    special[0], special[padding] = special[padding], special[0]
    return {token: i for i, token in enumerate([*special, *VOCABULARY[len(SPECIAL) :]])}


def tiny_tokenizer(config: dict) -> Tokenizer:
    ids = vocabulary(config)
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return tokenizer


def linear(name: str, n_out: int, n_in: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}


def norm(name: str, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def embeddings(config: dict, width: int, prefix: str = "embeddings") -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        f"{prefix}.word_embeddings.weight": (config["vocab_size"], width),
        f"{prefix}.position_embeddings.weight": (config["max_position_embeddings"], width),
        **norm(f"{prefix}.LayerNorm", width),
    }
    if config["model_type"] not in ("distilbert", "mpnet"):
        shapes[f"{prefix}.token_type_embeddings.weight"] = (config["type_vocab_size"], width)
    return shapes


def bert_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    narrow = config.get("embedding_size", WIDTH)
    shapes = embeddings(config, narrow)
    if narrow != WIDTH:
        shapes |= linear("embeddings_project", WIDTH, narrow)
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            shapes |= linear(f"{layer}.attention.self.{part}", WIDTH, WIDTH)
        shapes |= linear(f"{layer}.attention.output.dense", WIDTH, WIDTH) | norm(f"{layer}.attention.output.LayerNorm")
        shapes |= linear(f"{layer}.intermediate.dense", INNER, WIDTH) | linear(f"{layer}.output.dense", WIDTH, INNER)
        shapes |= norm(f"{layer}.output.LayerNorm")
    return shapes


def distilbert_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    shapes = embeddings(config, WIDTH)
    for i in range(LAYERS):
        layer = f"transformer.layer.{i}"
        for part in ("q_lin", "k_lin", "v_lin", "out_lin"):
            shapes |= linear(f"{layer}.attention.{part}", WIDTH, WIDTH)
        shapes |= norm(f"{layer}.sa_layer_norm") | norm(f"{layer}.output_layer_norm")
        shapes |= linear(f"{layer}.ffn.lin1", INNER, WIDTH) | linear(f"{layer}.ffn.lin2", WIDTH, INNER)
    return shapes


def mpnet_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    shapes = embeddings(config, WIDTH) | {"encoder.relative_attention_bias.weight": (32, HEADS)}
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        for part in "qkvo":
            shapes |= linear(f"{layer}.attention.attn.{part}", WIDTH, WIDTH)
        shapes |= norm(f"{layer}.attention.LayerNorm") | norm(f"{layer}.output.LayerNorm")
        shapes |= linear(f"{layer}.intermediate.dense", INNER, WIDTH) | linear(f"{layer}.output.dense", WIDTH, INNER)
    return shapes


def albert_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    narrow = config["embedding_size"]
    shapes = embeddings(config, narrow) | linear("encoder.embedding_hidden_mapping_in", WIDTH, narrow)
    for group in range(config["num_hidden_groups"]):
        for step in range(config["inner_group_num"]):
            layer = f"encoder.albert_layer_groups.{group}.albert_layers.{step}"
            for part in ("query", "key", "value", "dense"):
                shapes |= linear(f"{layer}.attention.{part}", WIDTH, WIDTH)
            shapes |= norm(f"{layer}.attention.LayerNorm") | norm(f"{layer}.full_layer_layer_norm")
            shapes |= linear(f"{layer}.ffn", INNER, WIDTH) | linear(f"{layer}.ffn_output", WIDTH, INNER)
    return shapes


def modernbert_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.tok_embeddings.weight": (config["vocab_size"], WIDTH),
        "embeddings.norm.weight": (WIDTH,),
        "final_norm.weight": (WIDTH,),
    }
    for i in range(config["num_hidden_layers"]):
        layer = f"layers.{i}"
        shapes |= {
            f"{layer}.attn.Wqkv.weight": (3 * WIDTH, WIDTH),
            f"{layer}.attn.Wo.weight": (WIDTH, WIDTH),
            f"{layer}.mlp.Wi.weight": (2 * INNER, WIDTH),
            f"{layer}.mlp.Wo.weight": (WIDTH, INNER),
            f"{layer}.mlp_norm.weight": (WIDTH,),
        }
        if i:
            shapes[f"{layer}.attn_norm.weight"] = (WIDTH,)
    return shapes


SHAPES = {
    "distilbert": distilbert_shapes,
    "mpnet": mpnet_shapes,
    "albert": albert_shapes,
    "modernbert": modernbert_shapes,
}


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape) * (0.5 if "embeddings" in name else 0.2)
        is_norm_scale = name.endswith("weight") and len(shape) == 1
        weights[name] = (values + is_norm_scale).astype(np.float32)
    return weights


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_plain_model(folder: Path, family: str, seed: int = 0) -> Path:
    """A plain transformers folder with config, weights and tokenizer, which is not a sentence model."""
    config = FAMILIES[family]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    shapes = SHAPES.get(family, bert_shapes)(config)
    save_file(random_weights(shapes, seed), folder / "model.safetensors", metadata={"format": "pt"})
    tiny_tokenizer(config).save(str(folder / "tokenizer.json"))
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if "type_vocab_size" in config else [])]
    limits = {"model_max_length": POSITIONS, "tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": names}
    write_json(folder / "tokenizer_config.json", limits | special)
    return folder


MODULE = "sentence_transformers.models."


def write_tiny_model(
    folder: Path,
    family: str = "bert",
    *,
    pooling: dict[str, object] | None = None,
    extra: tuple[str, ...] = ("Normalize",),
    seed: int = 0,
) -> Path:
    """A sentence-transformers folder in the older layout, with a tiny backbone."""
    write_plain_model(folder, family, seed)
    kinds = ["Transformer", "Pooling", *extra]
    paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds[1:], start=1))]
    rows = [
        {"idx": i, "name": str(i), "path": path, "type": MODULE + kind}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(folder / "modules.json", rows)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    chosen = pooling or {"pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, **chosen})
    return folder


# --- cross-encoders

ROBERTA_HEAD = {"classifier.dense": WIDTH, "classifier.out_proj": 0}
CLASSIFIERS: dict[str, dict[str, int]] = {  # linear layers in front of the scores; 0 is as wide as there are labels
    "bert": {"bert.pooler.dense": WIDTH, "classifier": 0},
    "albert": {"albert.pooler": WIDTH, "classifier": 0},
    "distilbert": {"pre_classifier": WIDTH, "classifier": 0},
    "roberta": ROBERTA_HEAD,
    "xlm-roberta": ROBERTA_HEAD,
    "camembert": ROBERTA_HEAD,
    "mpnet": ROBERTA_HEAD,
    "electra": ROBERTA_HEAD,
    "modernbert": {"head.dense": WIDTH, "classifier": 0},
}
PREFIXES = {"xlm-roberta": "roberta.", "camembert": "roberta.", "modernbert": "model."}


def write_tiny_classifier(
    folder: Path, family: str = "bert", *, n_labels: int = 1, seed: int = 0, config: dict[str, object] | None = None
) -> Path:
    """A sequence classifier of transformers around a tiny backbone; ``config`` is added to its own."""
    write_plain_model(folder, family, seed)
    own = FAMILIES[family]
    name = own["architectures"][0].removesuffix("Model") + "ForSequenceClassification"
    labels = {str(index): f"label {index}" for index in range(n_labels)}
    whole = {**own, "architectures": [name], "id2label": labels, "label2id": {v: int(k) for k, v in labels.items()}}
    whole |= config or {}
    write_json(folder / "config.json", whole)
    if own.get("type_vocab_size") == 1:  # such models get no types, and two separators between the texts
        tokenizer, ids = tiny_tokenizer(own), vocabulary(own)
        around = ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
        tokenizer.post_processor = processors.RobertaProcessing(*around, trim_offsets=False, add_prefix_space=False)
        tokenizer.save(str(folder / "tokenizer.json"))
        limits = json.loads((folder / "tokenizer_config.json").read_text())
        write_json(folder / "tokenizer_config.json", {**limits, "model_input_names": ["input_ids", "attention_mask"]})
    has_bias = family != "modernbert" or whole.get("classifier_bias", False)
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, width in CLASSIFIERS[family].items():
        shapes |= linear(layer, width or n_labels, WIDTH)
        if layer == "head.dense" and not has_bias:
            del shapes["head.dense.bias"]
    if family == "modernbert":
        shapes["head.norm.weight"] = (WIDTH,)
    prefix = PREFIXES.get(family, f"{family}.")
    backbone = SHAPES.get(family, bert_shapes)(own)
    weights = random_weights({prefix + each: shape for each, shape in backbone.items()} | shapes, seed)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_tiny_poly_encoder(folder: Path, family: str = "bert", *, n_codes: int = 4, seed: int = 0, **model) -> Path:
    """A tiny sentence model with codes; ``model`` are more arguments of ``write_tiny_model``."""
    write_tiny_model(folder, family, seed=seed, **model)
    codes = 0.5 * np.random.default_rng(seed).standard_normal((n_codes, WIDTH)).astype(np.float32)
    save_file({"codes": codes}, folder / "poly_encoder.safetensors")
    write_json(folder / "poly_encoder.json", {"version": 1, "codes": n_codes, "scale": 100.0})
    return folder
