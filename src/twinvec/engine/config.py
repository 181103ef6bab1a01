"""Read ``config.json`` of the backbones that the engine builds itself; unknown values raise an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from twinvec.errors import ModelFolderError, shown
from twinvec.json_checks import JsonObject
from twinvec.model.folder import refuse_own_code

__all__ = ["MODEL_CODE", "TORCH", "Backbone", "Rotary", "is_supported", "read_backbone"]

TORCH = "Load it with runtime='torch' (--runtime torch), which uses transformers."

Known = dict[str, tuple[object, ...]]

FALSE = False, None
EMPTY: tuple[object, ...] = None, {}, []

SHARED: Known = {
    "is_decoder": FALSE,  # true: a token sees only earlier ones
    "is_encoder_decoder": FALSE,
    "add_cross_attention": FALSE,
    "pruned_heads": EMPTY,
    "per_layer_config": EMPTY,  # other sizes in some layers
    "quantization_config": EMPTY,
    "tie_last_hidden_states": (None, True),
}
POSITIONS: Known = {"position_embedding_type": ("absolute", None)}
ROTARY: Known = {
    "attention_bias": FALSE,
    "mlp_bias": FALSE,
    "norm_bias": FALSE,
    "rope_scaling": EMPTY,
    "rope_theta": (None,),
    "partial_rotary_factor": (None, 1, 1.0),
}

# Supported values by ``Backbone.family``.
KNOWN: dict[str, Known] = {
    "bert": POSITIONS,
    "roberta": POSITIONS,
    "electra": POSITIONS,
    "albert": POSITIONS,
    "modernbert": ROTARY,
}


def check_known(config: Mapping[str, Any], family: str) -> None:
    """Raise ModelFolderError for a value with which transformers computes something other than our graph."""
    for key, known in (SHARED | KNOWN.get(family, {})).items():
        value = config.get(key)
        if key in config and not any(type(value) is type(each) and value == each for each in known):
            raise unknown_value(key, value)


def unknown_value(key: str, value: object) -> ModelFolderError:
    """The error for a value that the graph does not support."""
    problem = f"config.json: {key} is {shown(value)}, which the built-in graph does not support."
    return ModelFolderError(problem, hint=TORCH)


Config = Mapping[str, Any]

MODEL_CODE: Final = "AutoConfig", "AutoModel"  # auto_map entries that replace the backbone's code
FULL, SLIDING = "full_attention", "sliding_attention"

# Far beyond any encoder; larger graphs would not fit in memory.
MAX_LAYERS = 512
MAX_STEPS = 16  # inner layers of an ALBERT group
MAX_WIDTH = 1 << 16
MAX_ROTARY = 1 << 18  # positions
THETAS: Final = {"least": 1.0, "most": 1e12}


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary positions, with a local attention window in most layers (ModernBERT)."""

    theta: tuple[float, ...]  # one per layer
    window: tuple[int | None, ...]  # one per layer: tokens visible on each side; None means all


@dataclass(frozen=True, slots=True)
class Backbone:
    """The architecture and sizes of an encoder."""

    family: str
    n_layers: int
    width: int
    n_heads: int
    n_inner: int
    n_vocabulary: int
    n_positions: int  # the longest input, special tokens included
    activation: str
    epsilon: float
    embedding_width: int
    position_offset: int = 0  # rows of the position table before the first token's
    pad: int | None = None  # id of a token that gets no position, also within a text (RoBERTa-like)
    n_types: int = 0
    n_relative: int = 0  # rows of the relative position bias table (MPNet)
    blocks: tuple[tuple[int, ...], ...] = ()  # weight sets that each layer runs in turn (shared in ALBERT)
    rotary: Rotary | None = None

    def __post_init__(self) -> None:
        if self.width % self.n_heads:
            raise ModelFolderError(f"config.json: width {self.width} is not a multiple of {self.n_heads} heads.")
        if self.rotary and self.head_width % 2:
            raise ModelFolderError(f"config.json: rotary positions need an even head width, got {self.head_width}.")

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.n_heads

    @property
    def n_blocks(self) -> int:
        """Number of layer weight sets."""
        return 1 + max(block for layer in self.blocks for block in layer)


def is_supported(config: Config) -> bool:
    """Whether the engine can build the graph of this ``config.json`` without torch."""
    kind = config.get("model_type")
    return isinstance(kind, str) and kind in FAMILIES


def read_backbone(config: Config) -> Backbone:
    """Read the backbone of a ``config.json`` of a supported family.

    A value that changes what transformers computes is either supported, or raises an error that names it.
    """
    refuse_own_code(config, *MODEL_CODE, file="config.json")
    backbone = FAMILIES[config["model_type"]](JsonObject(config, "config.json"))
    check_known(config, backbone.family)
    return backbone


def _each(n_layers: int) -> tuple[tuple[int, ...], ...]:
    return tuple((layer,) for layer in range(n_layers))


def _bert(config: JsonObject, *, family: str = "bert", activation: str = "gelu") -> Backbone:
    width = config.integer("hidden_size", most=MAX_WIDTH)
    n_layers = config.integer("num_hidden_layers", most=MAX_LAYERS)
    return Backbone(
        family=family,
        n_layers=n_layers,
        width=width,
        n_heads=config.integer("num_attention_heads", most=MAX_WIDTH),
        n_inner=config.integer("intermediate_size"),
        n_vocabulary=config.integer("vocab_size"),
        n_positions=config.integer("max_position_embeddings"),
        activation=config.text("hidden_act", activation),
        epsilon=_epsilon(config, "layer_norm_eps", 1e-12),
        embedding_width=width,
        n_types=0 if family == "mpnet" else config.integer("type_vocab_size", 2),
        blocks=_each(n_layers),
    )


def _epsilon(config: JsonObject, key: str, default: float) -> float:
    return config.number(key, default, least=1e-30, most=1.0)


def _counted(base: Backbone, pad: int) -> Backbone:
    """A backbone whose position table starts with unused rows, up to the one for padding."""
    n_positions = base.n_positions - pad - 1
    if n_positions < 1:
        raise ModelFolderError(
            f"config.json: max_position_embeddings is {base.n_positions}, too small for the padding id {pad}."
        )
    return replace(base, pad=pad, position_offset=pad + 1, n_positions=n_positions)


def _roberta(config: JsonObject) -> Backbone:
    return _counted(_bert(config, family="roberta"), config.integer("pad_token_id", 1, least=0))


def _mpnet(config: JsonObject) -> Backbone:
    # Its code uses padding id 1 and 32 buckets, whatever the config says.
    n_rows = config.integer("relative_attention_num_buckets", 32, least=32)
    return replace(_counted(_bert(config, family="mpnet"), 1), n_relative=n_rows)


def _electra(config: JsonObject) -> Backbone:
    return replace(_bert(config, family="electra"), embedding_width=config.integer("embedding_size", 128))


def _albert(config: JsonObject) -> Backbone:
    base = _bert(config, family="albert", activation="gelu_new")
    n_groups = config.integer("num_hidden_groups", 1, most=MAX_LAYERS)
    inner = config.integer("inner_group_num", 1, most=MAX_STEPS)
    firsts = [int(layer / (base.n_layers / n_groups)) * inner for layer in range(base.n_layers)]  # as the reference
    return replace(
        base,
        embedding_width=config.integer("embedding_size", 128),
        blocks=tuple(tuple(first + step for step in range(inner)) for first in firsts),
    )


def _distilbert(config: JsonObject) -> Backbone:
    width = config.integer("dim", most=MAX_WIDTH)
    n_layers = config.integer("n_layers", most=MAX_LAYERS)
    n_heads = config.integer("n_heads", most=MAX_WIDTH)
    for other, value in (("hidden_size", width), ("num_hidden_layers", n_layers), ("num_attention_heads", n_heads)):
        if config.content.get(other, value) != value:  # transformers treats them as the same settings
            raise unknown_value(other, config.content[other])
    return Backbone(
        family="distilbert",
        n_layers=n_layers,
        width=width,
        n_heads=n_heads,
        n_inner=config.integer("hidden_dim"),
        n_vocabulary=config.integer("vocab_size"),
        n_positions=config.integer("max_position_embeddings"),
        activation=config.text("activation", "gelu"),
        epsilon=1e-12,
        embedding_width=width,
        blocks=_each(n_layers),
    )


def _modernbert(config: JsonObject) -> Backbone:
    n_layers = config.integer("num_hidden_layers", most=MAX_LAYERS)
    width = config.integer("hidden_size", most=MAX_WIDTH)
    n_heads = config.integer("num_attention_heads", most=MAX_WIDTH)
    if config.content.get("head_dim") not in (None, width // n_heads):
        raise unknown_value("head_dim", config.content["head_dim"])
    return Backbone(
        family="modernbert",
        n_layers=n_layers,
        width=width,
        n_heads=n_heads,
        n_inner=config.integer("intermediate_size"),
        n_vocabulary=config.integer("vocab_size"),
        n_positions=config.integer("max_position_embeddings", most=MAX_ROTARY),
        activation=config.text("hidden_activation", "gelu"),
        epsilon=_epsilon(config, "norm_eps", 1e-5),
        embedding_width=width,
        blocks=_each(n_layers),
        rotary=_rotary(config, n_layers),
    )


def _rotary(config: JsonObject, n_layers: int) -> Rotary:
    if not set(config.inner("rope_parameters", {}).content) <= {FULL, SLIDING}:
        raise unknown_value("rope_parameters", config.content["rope_parameters"])
    wide = _theta(config, FULL, config.number("global_rope_theta", 160_000.0, **THETAS))
    has_near = config.content.get("local_rope_theta", 0) is not None  # None: as in the wide layers
    near = _theta(config, SLIDING, config.number("local_rope_theta", 10_000.0, **THETAS) if has_near else wide)
    reach = config.integer("local_attention", 128, least=2) // 2
    if config.content.get("sliding_window") not in (None, reach):  # another name for it
        raise unknown_value("sliding_window", config.content["sliding_window"])
    is_wide = _is_wide(config, n_layers)
    return Rotary(
        theta=tuple(wide if sees_all else near for sees_all in is_wide),
        window=tuple(None if sees_all else reach for sees_all in is_wide),
    )


def _theta(config: JsonObject, kind: str, default: float) -> float:
    rope = config.inner("rope_parameters", {}).inner(kind, {})
    if not set(rope.content) <= {"rope_type", "rope_theta"} or rope.content.get("rope_type", "default") != "default":
        raise unknown_value(f"rope_parameters, {kind}", rope.content)
    return rope.number("rope_theta", default, **THETAS)


def _is_wide(config: JsonObject, n_layers: int) -> list[bool]:
    """For each layer, whether its tokens see all others."""
    every = config.integer("global_attn_every_n_layers", 3)
    types = config.items("layer_types", None)
    if types is None:
        return [layer % every == 0 for layer in range(n_layers)]
    if len(types) != n_layers or any(kind not in (FULL, SLIDING) for kind in types):
        raise config.wrong("layer_types", f"a list of {n_layers} values {FULL} or {SLIDING}")
    return [kind == FULL for kind in types]


FAMILIES: dict[str, Callable[[JsonObject], Backbone]] = {
    "bert": _bert,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
    "camembert": _roberta,
    "distilbert": _distilbert,
    "mpnet": _mpnet,
    "electra": _electra,
    "albert": _albert,
    "modernbert": _modernbert,
}
