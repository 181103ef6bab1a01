"""Backbones that the engine builds itself, described as data from ``config.json``; unknown values are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from twinvec.errors import ModelFolderError, shown
from twinvec.json_checks import JsonObject
from twinvec.model.folder import refuse_own_code

__all__ = ["MODEL_CODE", "TORCH", "Backbone", "Rotary", "is_supported", "read_backbone"]

TORCH = "Load it with runtime='torch' (--runtime torch), which runs transformers itself."

Known = dict[str, tuple[object, ...]]

NO = False, None
NOTHING: tuple[object, ...] = None, {}, []

SHARED: Known = {
    "is_decoder": NO,  # true: a token sees only those before it
    "is_encoder_decoder": NO,
    "add_cross_attention": NO,
    "pruned_heads": NOTHING,
    "per_layer_config": NOTHING,  # other sizes in some layers
    "quantization_config": NOTHING,
    "tie_last_hidden_states": (None, True),
}
POSITIONS: Known = {"position_embedding_type": ("absolute", None)}
ROTARY: Known = {
    "attention_bias": NO,
    "mlp_bias": NO,
    "norm_bias": NO,
    "rope_scaling": NOTHING,
    "rope_theta": (None,),
    "partial_rotary_factor": (None, 1, 1.0),
}

# By family, as ``Backbone`` names it.
KNOWN: dict[str, Known] = {
    "bert": POSITIONS,
    "roberta": POSITIONS,
    "electra": POSITIONS,
    "albert": POSITIONS,
    "modernbert": ROTARY,
}


def check_known(config: Mapping[str, Any], family: str) -> None:
    """Refuse a value under which transformers would compute something else than our graph."""
    for key, known in (SHARED | KNOWN.get(family, {})).items():
        if key in config and not _is_among(config[key], known):
            raise unknown_value(key, config[key])


def _is_among(value: object, known: tuple[object, ...]) -> bool:
    return any(type(value) is type(each) and value == each for each in known)


def unknown_value(key: str, value: object) -> ModelFolderError:
    """The error for a value that changes vectors in a way that the graph does not know."""
    problem = f"config.json: {key} is {shown(value)}, which the built-in graph does not know."
    return ModelFolderError(problem, hint=TORCH)


Config = Mapping[str, Any]

MODEL_CODE: Final = "AutoConfig", "AutoModel"  # the entries of auto_map that would be the backbone's own code
FULL, SLIDING = "full_attention", "sliding_attention"

# No encoder comes near them; beyond, building the graph alone would take all memory.
MOST_LAYERS = 512
MOST_STEPS = 16  # inner layers of a group of ALBERT's
MOST_WIDTH = 1 << 16
MOST_ROTARY = 1 << 18  # positions
THETAS: Final = {"least": 1.0, "most": 1e12}


@dataclass(frozen=True, slots=True)
class Rotary:
    """Positions as rotations, with a window around each token in most layers (ModernBERT)."""

    theta: tuple[float, ...]  # one per layer
    window: tuple[int | None, ...]  # one per layer: how far a token sees to each side; None is everywhere


@dataclass(frozen=True, slots=True)
class Backbone:
    """The shape of an encoder. All sizes count, none is a weight."""

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
    position_offset: int = 0  # rows of the position table before that of the first token
    pad: int | None = None  # the id of a token that is not counted in positions, also in a text (RoBERTa and its kin)
    n_types: int = 0
    n_relative: int = 0  # rows of the table of a relative position bias (MPNet)
    blocks: tuple[tuple[int, ...], ...] = ()  # which sets of weights each layer runs, in turn (ALBERT shares them)
    rotary: Rotary | None = None

    def __post_init__(self) -> None:
        if self.width % self.n_heads:
            raise ModelFolderError(f"config.json: width {self.width} is no multiple of {self.n_heads} heads.")
        if self.rotary and self.head_width % 2:
            raise ModelFolderError(f"config.json: heads of the odd width {self.head_width} cannot be rotated.")

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.n_heads

    @property
    def n_blocks(self) -> int:
        """How many sets of layer weights there are."""
        return 1 + max(block for layer in self.blocks for block in layer)


def is_supported(config: Config) -> bool:
    """Whether the graph of this ``config.json`` can be built without torch."""
    kind = config.get("model_type")
    return isinstance(kind, str) and kind in FAMILIES


def read_backbone(config: Config) -> Backbone:
    """Describe the backbone of a ``config.json``; the family must be a supported one.

    A value that changes what transformers computes is understood, or refused by its name.
    """
    refuse_own_code(config, *MODEL_CODE, file="config.json")
    backbone = FAMILIES[config["model_type"]](JsonObject(config, "config.json"))
    check_known(config, backbone.family)
    return backbone


def _each(n_layers: int) -> tuple[tuple[int, ...], ...]:
    return tuple((layer,) for layer in range(n_layers))


def _bert(config: JsonObject, *, family: str = "bert", activation: str = "gelu") -> Backbone:
    width = config.integer("hidden_size", most=MOST_WIDTH)
    n_layers = config.integer("num_hidden_layers", most=MOST_LAYERS)
    return Backbone(
        family=family,
        n_layers=n_layers,
        width=width,
        n_heads=config.integer("num_attention_heads", most=MOST_WIDTH),
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
    """A backbone whose position table starts with the rows up to that of padding, which are not counted."""
    n_positions = base.n_positions - pad - 1
    if n_positions < 1:
        raise ModelFolderError(
            f"config.json: max_position_embeddings is {base.n_positions}, of which padding ({pad}) leaves none."
        )
    return replace(base, pad=pad, position_offset=pad + 1, n_positions=n_positions)


def _roberta(config: JsonObject) -> Backbone:
    return _counted(_bert(config, family="roberta"), config.integer("pad_token_id", 1, least=0))


def _mpnet(config: JsonObject) -> Backbone:
    # Its code counts from 1 and has 32 buckets, whatever its config says of padding and buckets.
    n_rows = config.integer("relative_attention_num_buckets", 32, least=32)
    return replace(_counted(_bert(config, family="mpnet"), 1), n_relative=n_rows)


def _electra(config: JsonObject) -> Backbone:
    return replace(_bert(config, family="electra"), embedding_width=config.integer("embedding_size", 128))


def _albert(config: JsonObject) -> Backbone:
    base = _bert(config, family="albert", activation="gelu_new")
    n_groups = config.integer("num_hidden_groups", 1, most=MOST_LAYERS)
    inner = config.integer("inner_group_num", 1, most=MOST_STEPS)
    firsts = [int(layer / (base.n_layers / n_groups)) * inner for layer in range(base.n_layers)]  # as the reference
    return replace(
        base,
        embedding_width=config.integer("embedding_size", 128),
        blocks=tuple(tuple(first + step for step in range(inner)) for first in firsts),
    )


def _distilbert(config: JsonObject) -> Backbone:
    width = config.integer("dim", most=MOST_WIDTH)
    n_layers = config.integer("n_layers", most=MOST_LAYERS)
    n_heads = config.integer("n_heads", most=MOST_WIDTH)
    for other, value in (("hidden_size", width), ("num_hidden_layers", n_layers), ("num_attention_heads", n_heads)):
        if config.content.get(other, value) != value:  # transformers takes them for the same settings
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
    n_layers = config.integer("num_hidden_layers", most=MOST_LAYERS)
    width = config.integer("hidden_size", most=MOST_WIDTH)
    n_heads = config.integer("num_attention_heads", most=MOST_WIDTH)
    if config.content.get("head_dim") not in (None, width // n_heads):
        raise unknown_value("head_dim", config.content["head_dim"])
    return Backbone(
        family="modernbert",
        n_layers=n_layers,
        width=width,
        n_heads=n_heads,
        n_inner=config.integer("intermediate_size"),
        n_vocabulary=config.integer("vocab_size"),
        n_positions=config.integer("max_position_embeddings", most=MOST_ROTARY),
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
    has_near = config.content.get("local_rope_theta", 0) is not None  # else as in the wide layers
    near = _theta(config, SLIDING, config.number("local_rope_theta", 10_000.0, **THETAS) if has_near else wide)
    reach = config.integer("local_attention", 128, least=2) // 2
    if config.content.get("sliding_window") not in (None, reach):  # its other name
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
    """For each layer whether its tokens see all others."""
    every = config.integer("global_attn_every_n_layers", 3)
    types = config.items("layer_types", None)
    if types is None:
        return [layer % every == 0 for layer in range(n_layers)]
    if len(types) != n_layers or any(kind not in (FULL, SLIDING) for kind in types):
        raise config.wrong("layer_types", f"{n_layers} times {FULL} or {SLIDING}")
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
