"""The backbones that Twinvec builds itself, described as data from ``config.json``.

Eight families of encoders differ in few ways: where the norms stand, how positions enter, whether embeddings are
narrower than the layers, whether layers share weights. Those ways are the fields below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from twinvec.errors import ModelFolderError

__all__ = ["Backbone", "Rotary", "is_supported", "read_backbone"]

Config = Mapping[str, Any]


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
    n_types: int = 0
    n_relative: int = 0  # buckets of a relative position bias (MPNet)
    blocks: tuple[tuple[int, ...], ...] = ()  # which sets of weights each layer runs, in turn (ALBERT shares them)
    rotary: Rotary | None = None

    def __post_init__(self) -> None:
        if self.width % self.n_heads:
            raise ModelFolderError(f"config.json: width {self.width} is no multiple of {self.n_heads} heads.")

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
    return config.get("model_type") in FAMILIES


def read_backbone(config: Config) -> Backbone:
    """Describe the backbone of a ``config.json``; the family must be a supported one."""
    try:
        return FAMILIES[config["model_type"]](config)
    except KeyError as error:
        raise ModelFolderError(
            f"config.json lacks {error.args[0]!r}, which a {config.get('model_type')!r} model must state.",
            hint="Fetch the model again.",
        ) from error
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelFolderError):
            raise
        raise ModelFolderError(f"config.json holds a value of the wrong kind: {error}.") from error


def _each(n_layers: int) -> tuple[tuple[int, ...], ...]:
    return tuple((layer,) for layer in range(n_layers))


def _bert(config: Config) -> Backbone:
    kind = config.get("position_embedding_type", "absolute")
    if kind not in ("absolute", None):
        raise ModelFolderError(
            f"position_embedding_type {kind!r} is not supported.", hint="Load it with runtime='torch'."
        )
    return Backbone(
        family="bert",
        n_layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        n_heads=config["num_attention_heads"],
        n_inner=config["intermediate_size"],
        n_vocabulary=config["vocab_size"],
        n_positions=config["max_position_embeddings"],
        activation=config.get("hidden_act", "gelu"),
        epsilon=config.get("layer_norm_eps", 1e-12),
        embedding_width=config.get("embedding_size") or config["hidden_size"],
        n_types=config.get("type_vocab_size", 2),
        blocks=_each(config["num_hidden_layers"]),
    )


def _roberta(config: Config) -> Backbone:
    # The position table starts with a row for padding and, by convention, those before it.
    offset = int(config.get("pad_token_id", 1)) + 1
    base = _bert(config)
    return replace(base, family="roberta", position_offset=offset, n_positions=base.n_positions - offset)


def _mpnet(config: Config) -> Backbone:
    base = _roberta({"pad_token_id": 1, **config})
    return replace(base, family="mpnet", n_types=0, n_relative=config.get("relative_attention_num_buckets", 32))


def _electra(config: Config) -> Backbone:
    return replace(_bert(config), family="electra")


def _albert(config: Config) -> Backbone:
    n_layers, n_groups = config["num_hidden_layers"], config.get("num_hidden_groups", 1)
    inner = config.get("inner_group_num", 1)
    blocks = tuple(
        tuple(layer * n_groups // n_layers * inner + step for step in range(inner)) for layer in range(n_layers)
    )
    return replace(
        _bert({"hidden_act": "gelu_new", **config}),
        family="albert",
        embedding_width=config.get("embedding_size", 128),
        blocks=blocks,
    )


def _distilbert(config: Config) -> Backbone:
    return Backbone(
        family="distilbert",
        n_layers=config["n_layers"],
        width=config["dim"],
        n_heads=config["n_heads"],
        n_inner=config["hidden_dim"],
        n_vocabulary=config["vocab_size"],
        n_positions=config["max_position_embeddings"],
        activation=config.get("activation", "gelu"),
        epsilon=1e-12,
        embedding_width=config["dim"],
        blocks=_each(config["n_layers"]),
    )


def _modernbert(config: Config) -> Backbone:
    for name in ("attention_bias", "mlp_bias", "norm_bias"):
        if config.get(name):
            raise ModelFolderError(f"A ModernBERT with {name} is not supported.", hint="Load it with runtime='torch'.")
    n_layers = config["num_hidden_layers"]
    every = config.get("global_attn_every_n_layers", 3)
    types = config.get("layer_types") or [
        "full_attention" if layer % every == 0 else "sliding_attention" for layer in range(n_layers)
    ]
    rope = config.get("rope_parameters") or {}
    wide = rope.get("full_attention", {}).get("rope_theta", config.get("global_rope_theta", 160_000.0))
    near = rope.get("sliding_attention", {}).get("rope_theta", config.get("local_rope_theta") or wide)
    reach = config.get("local_attention", 128) // 2
    is_wide = [kind == "full_attention" for kind in types]
    return Backbone(
        family="modernbert",
        n_layers=n_layers,
        width=config["hidden_size"],
        n_heads=config["num_attention_heads"],
        n_inner=config["intermediate_size"],
        n_vocabulary=config["vocab_size"],
        n_positions=config["max_position_embeddings"],
        activation=config.get("hidden_activation", "gelu"),
        epsilon=config.get("norm_eps", 1e-5),
        embedding_width=config["hidden_size"],
        blocks=_each(n_layers),
        rotary=Rotary(
            theta=tuple(float(wide if sees_all else near) for sees_all in is_wide),
            window=tuple(None if sees_all else reach for sees_all in is_wide),
        ),
    )


FAMILIES: dict[str, Callable[[Config], Backbone]] = {
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
