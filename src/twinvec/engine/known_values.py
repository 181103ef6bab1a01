"""Keys of ``config.json`` that change what transformers computes, and the values under which our graph does the same.

A key that is neither here nor read in ``config.py`` is one that no release of the architecture's forward pass reads:
dropout, initial weights, labels, heads of other tasks, versions, what some tool noted. A test holds the keys of
transformers' own config classes against these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinvec.errors import ModelFolderError
from twinvec.json_object import shown

__all__ = ["TORCH", "check_known", "unknown_value"]

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
