"""Corrupt a file: change values of a JSON file, or bytes of any file."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple

DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]

VALUES = [
    *(None, True, False, 0, 1, -1, 2, 3, 4, 7, 8, 16, 31, 33, 64, 1.5, -0.0, 1e-300, 1e300, 1e30, 0.1, 10**6),
    *(10**10, 2**31, 2**63, 2**64, 10**400, -(10**10), float("inf"), float("-inf"), float("nan")),
    *("", " ", "0", "1", "true", "x", "x" * 300, "../x", "/etc/passwd", ".", "a\0b", "\ud800", "é" * 50, "mean", "cls"),
    *("gelu", "relu", "silu", "gelu_10", "bert", "mpnet", "modernbert", "t5", "left", "[PAD]", "torch.nn.Identity"),
    *([], {}, [0], [None], ["a"], [[]], {"a": 1}, {"0": []}, [1, 2, 3], DEEP, list(range(1000))),
]

# Keys with a meaning elsewhere, to add to a file.
KEYS = [
    *("is_decoder", "add_cross_attention", "is_encoder_decoder", "position_embedding_type", "pruned_heads"),
    *("per_layer_config", "quantization_config", "rope_scaling", "rope_parameters", "sliding_window", "head_dim"),
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "dim", "n_layers", "n_heads", "embedding_size"),
    *("vocab_size", "layer_types", "pad_token_id", "type_vocab_size", "hidden_act", "layer_norm_eps", "return_dict"),
    *("torch_dtype", "dtype", "output_hidden_states", "tie_word_embeddings", "attn_implementation", "auto_map"),
    *("pooling_mode", "include_prompt", "max_seq_length", "do_lower_case", "truncate_dim", "prompts", "bias"),
    *(
        "default_prompt_name",
        "similarity_fn_name",
        "model_max_length",
        "truncation_side",
        "strip_accents",
        "type",
        "path",
    ),
    *("tokenizer_class", "tokenize_chinese_chars", "use_residual", "activation_function", "config_args", "model_args"),
]


class Mutation(NamedTuple):
    """The new content, and the path of keys to the change (None for bytes)."""

    content: bytes
    path: tuple[str | int, ...] | None
    note: str


def mutate(original: bytes, random: Random) -> Mutation:
    """The file with one to three changes, mostly of JSON values."""
    if random.random() < 0.15:
        return mutate_bytes(original, random)
    try:
        value = json.loads(original)
    except ValueError:
        return mutate_bytes(original, random)
    box = {"": value}
    paths, notes = [], []
    for _ in range(random.choice((1, 1, 1, 1, 1, 2, 3))):
        path, note = _change(box, random)
        paths.append(path[1:])
        notes.append(f"{'/'.join(map(str, path[1:]))}: {note}")
    path = paths[0] if len(paths) == 1 else ()
    return Mutation(_dumped(box[""]), path, "; ".join(notes))


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _change(box: dict, random: Random) -> tuple[tuple, str]:
    parent, key, path = _walk(box, random)
    value = parent[key]
    kind = random.choice(("value", "value", "value", "near", "near", "delete", "rename", "add", "wrap", "copy"))
    if kind == "delete" and len(path) > 1:
        del parent[key]
    elif kind == "rename" and isinstance(parent, dict) and len(path) > 1:
        parent[random.choice(KEYS)] = parent.pop(key)
        path = path[:-1]  # the new name may have a meaning
    elif kind == "add" and any(isinstance(each, dict) for each in (value, parent)):
        added, into = random.choice(KEYS), value if isinstance(value, dict) else parent
        into[added] = _some_value(random)
        return (*(path if into is value else path[:-1]), added), f"added {into[added]!r:.60}"
    elif kind == "near":
        parent[key] = _near(value, random)
    elif kind == "wrap":
        parent[key] = random.choice(([value], {"a": value}, [value, value]))
    elif kind == "copy":
        other, other_key, _ = _walk(box, random)
        parent[key] = json.loads(json.dumps(other[other_key]))
    else:
        parent[key] = _some_value(random)
    return path, f"{kind} {parent.get(key) if isinstance(parent, dict) else ''!r:.60}"


def _some_value(random: Random) -> Any:
    return deepcopy(random.choice(VALUES))  # a copy: it may be changed further


def _walk(box: dict, random: Random) -> tuple[Any, Any, tuple]:
    """A random value of the tree: its container, its key and its path."""
    parent, key, path = box, "", ("",)
    while isinstance(parent[key], (dict, list)) and parent[key] and (len(path) == 1 or random.random() < 0.8):
        parent = parent[key]
        key = random.choice(list(parent)) if isinstance(parent, dict) else random.randrange(len(parent))
        path = (*path, key)
    return parent, key, path


def _near(value: Any, random: Random) -> Any:
    """A similar value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)) and abs(value) < 2**64:
        return random.choice((value + 1, value - 1, value * 2, value // 2, -value, float(value), str(value), value / 3))
    if isinstance(value, str) and value:
        cut = random.randrange(len(value))
        return random.choice((value[:cut], value[cut:], value + "x", value.upper(), value.lower(), value[::-1]))
    if isinstance(value, list) and value:
        return random.choice((value[:-1], value[1:], value + value, value[::-1]))
    return _some_value(random)


def mutate_bytes(original: bytes, random: Random) -> Mutation:
    """The file with some bytes changed, removed, inserted or cut off."""
    at = random.randrange(len(original) + 1)
    end = min(len(original), at + random.choice((1, 2, 8, 100)))
    some = bytes(random.randrange(256) for _ in range(random.choice((1, 4))))
    kind = random.choice(("cut", "drop", "insert", "replace", "repeat", "empty", "nest", "mark"))
    made = {
        "cut": original[:at],
        "drop": original[:at] + original[end:],
        "insert": original[:at] + some + original[at:],
        "replace": original[:at] + some + original[at + len(some) :],
        "repeat": original[:end] + original[at:],
        "empty": b"",
        "nest": b"[" * 100_000 if random.random() < 0.5 else b'{"a":' * 5000 + b"1" + b"}" * 5000,
        "mark": b"\xef\xbb\xbf" + original,
    }
    return Mutation(made[kind], None, f"bytes: {kind} at {at}")
