"""The model that training starts from: read, with the recipe's pooling, and pruned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.processors import TemplateProcessing

from twinvec.engine.config import Backbone, read_backbone
from twinvec.engine.names import canonical_name
from twinvec.engine.readout import readout_width
from twinvec.engine.weights import backbone_weights, read_weights
from twinvec.errors import InputError, UnknownNameError
from twinvec.files import read_json, saved_folder, write_json
from twinvec.model.folder import Dense, ModelFolder, Pooling, read_model_folder
from twinvec.model.hub import find_model
from twinvec.model.save import write_model
from twinvec.model.tokenizer import load_tokenizer
from twinvec.ownership import MODEL
from twinvec.training.checkpoint import PROJECTION, START
from twinvec.training.processes import Processes
from twinvec.training.recipe import ModelPart
from twinvec.types import Array, Ids, Vectors

__all__ = ["pruned", "shrink_model", "start_folder", "with_projection"]


def start_folder(part: ModelPart) -> ModelFolder:
    """The start model, with the pooling and max_tokens of the recipe."""
    folder = read_model_folder(find_model(part.start))
    if not folder.has_layers:
        _check_trainable(part, folder)
        return replace(folder, max_tokens=part.max_tokens or folder.max_tokens)
    if part.pooling is not None and folder.readout != Pooling((part.pooling,), folder.readout.include_prompt):
        if len(folder.modules) > 1 and any(hasattr(module, "folder") for module in folder.modules):
            raise InputError(
                f"{folder.path} has layers after its pooling, so the pooling cannot change to {part.pooling!r}.",
                hint="Keep its pooling, or start from the backbone alone.",
            )
        folder = replace(folder, modules=(Pooling((part.pooling,)), *folder.modules[1:]))
    return replace(folder, max_tokens=part.max_tokens or folder.max_tokens)


def _check_trainable(part: ModelPart, folder: ModelFolder) -> None:
    """Refuse a model without layers, except a static one whose table is to be trained further."""
    if folder.is_use:
        problem = "is a Universal Sentence Encoder, which cannot be trained further."
    elif part.network != "bi-encoder":
        problem = f"is a static model, which cannot become a {part.network}."
    elif part.is_smaller or part.pooling or part.projection:
        problem = "is a static model: it has no layers, feed_forward, special_tokens, pooling or projection."
    else:
        return
    raise InputError(f"{folder.path} {problem}", hint="Start from a model with a Transformer.")


def pruned(part: ModelPart, folder: ModelFolder, *, work: Path, processes: Processes) -> ModelFolder:
    """The pruned start model, written once into ``work``."""
    if not part.is_smaller:
        return folder
    small = work / START

    def prune() -> None:
        if not small.is_dir():
            work.mkdir(parents=True, exist_ok=True)
            shrink_model(
                folder,
                small,
                layers=part.layers,
                n_inner=part.feed_forward,
                special_tokens=part.special_tokens,
                trust_pickle=part.trust_pickle,
            )

    processes.first(prune)
    return start_folder(replace(part, start=str(small)))


def with_projection(folder: ModelFolder, *, work: Path, processes: Processes) -> ModelFolder:
    """The start model with a square Dense after its pooling, still the identity; the Dense is written into ``work``."""
    width = readout_width(folder.modules[:1], read_backbone(folder.config).width)
    path = work / PROJECTION
    config = {"in_features": width, "out_features": width, "bias": False, "activation_function": IDENTITY}

    def write() -> None:
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / "config.json", config)
        save_file({"linear.weight": np.eye(width, dtype=np.float32)}, path / "model.safetensors")

    processes.first(write)
    first, *others = folder.modules
    return replace(folder, modules=(first, Dense(path, width, width, False, "Identity"), *others))


def keep_special_tokens(folder: Path, kept: Sequence[str]) -> None:
    """Rewrite the tokenizer in ``folder`` so that it adds only the special tokens in ``kept`` to a text."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"special_tokens requires a {path.name}, but this model has only a vocab.txt.")
    tokenizer = load_tokenizer(folder)
    before, after = tokenizer.tokens(tokenizer.prefix), tokenizer.tokens(tokenizer.suffix)
    for name in kept:
        if name not in (*before, *after):
            raise UnknownNameError("special token", name, (*before, *after))
    fast = FastTokenizer.from_file(str(path))
    frame = [name for name in before if name in kept], [name for name in after if name in kept]
    fast.post_processor = TemplateProcessing(
        single=[*frame[0], "$A", *frame[1]], special_tokens=[(name, fast.token_to_id(name)) for name in kept]
    )
    fast.save(str(path))
    # With an architecture's own tokenizer class, transformers would add that architecture's special tokens.
    config = read_json(folder / "tokenizer_config.json")
    write_json(folder / "tokenizer_config.json", config | {"tokenizer_class": "PreTrainedTokenizerFast"})


IDENTITY = "torch.nn.modules.linear.Identity"
FAMILIES = ("bert",)
BLOCK = re.compile(r"^blocks\.(\d+)\.(.+)$")


def shrink_model(
    folder: ModelFolder,
    target: Path,
    *,
    layers: Sequence[int] = (),
    n_inner: int | None = None,
    special_tokens: Sequence[str] = (),
    trust_pickle: bool,
) -> None:
    """Write a model with only these ``layers``, ``n_inner`` feed-forward neurons in each, and these ``special_tokens``.

    By default, all are kept.
    """
    backbone = read_backbone(folder.config)
    if backbone.family not in FAMILIES:
        raise InputError(
            f"{folder.path} has the type {folder.config.get('model_type')!r}; only BERT models can be pruned.",
            hint="Remove layers, feed_forward and special_tokens.",
        )
    kept = _checked_layers(layers, backbone)
    if n_inner is not None and n_inner > backbone.n_inner:
        raise InputError(f"feed_forward is {n_inner}, but this model has only {backbone.n_inner} neurons per layer.")
    n_kept = n_inner or backbone.n_inner
    stored = read_weights(folder.backbone, trust_pickle=trust_pickle)
    weights = backbone_weights(stored, backbone, folder.backbone)
    names = {canonical_name(name, backbone.family): name for name in stored}
    neurons = {layer: _largest_neurons(weights, layer, n_kept) for layer in kept}
    small = {}
    for name, values in weights.items():
        block = BLOCK.match(name)
        if block is None:
            small[names[name]] = values
        elif int(block[1]) in neurons:
            layer = int(block[1])
            # the layer number is also the first number in the stored name
            renamed = re.sub(r"\d+", str(kept.index(layer)), names[name], count=1)
            small[renamed] = _cut(block[2], values, neurons[layer])
    with saved_folder(target, MODEL) as path:
        write_model(folder, path)
        if special_tokens:
            keep_special_tokens(path, special_tokens)
        save_file(small, path / "model.safetensors", metadata={"format": "pt"})
        config = read_json(path / "config.json")
        write_json(path / "config.json", config | {"num_hidden_layers": len(kept), "intermediate_size": n_kept})


def _checked_layers(layers: Sequence[int], backbone: Backbone) -> list[int]:
    if not layers:
        return list(range(backbone.n_blocks))
    wrong = [layer for layer in layers if not 0 <= layer < backbone.n_blocks]
    if wrong or len(set(layers)) < len(layers):
        raise InputError(
            f"layers must be different numbers from 0 to {backbone.n_blocks - 1} for this model, got {list(layers)}."
        )
    return list(layers)


def _largest_neurons(weights: Mapping[str, Vectors], layer: int, count: int) -> Ids:
    """The sorted indices, ``(count,)``, of the neurons with the largest product of input and output norms."""
    into, out_of = weights[f"blocks.{layer}.inner.weight"], weights[f"blocks.{layer}.outer.weight"]
    weight = np.linalg.norm(into, axis=1) * np.linalg.norm(out_of, axis=0)
    return np.sort(np.argsort(-weight, kind="stable")[:count])


def _cut(name: str, values: Vectors, neurons: Ids) -> Array:
    """A parameter of a layer, reduced to these neurons."""
    if name.startswith("inner."):
        return np.ascontiguousarray(values[neurons])
    if name == "outer.weight":
        return np.ascontiguousarray(values[:, neurons])
    return values
