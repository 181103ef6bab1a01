"""Prepare a recipe for the loop: read its files, prune and load the network, tokenize, and identify the run."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.processors import TemplateProcessing
from torch import nn

from twinvec.data.examples import Examples, read_examples
from twinvec.engine.config import Backbone, read_backbone
from twinvec.engine.names import canonical_name
from twinvec.engine.weights import backbone_weights, read_weights
from twinvec.errors import InputError, UnknownNameError
from twinvec.files import read_json, saved_folder, write_json
from twinvec.model.folder import ModelFolder, Pooling, read_model_folder
from twinvec.model.hub import find_model
from twinvec.model.identity import model_digest
from twinvec.model.save import write_model
from twinvec.model.tokenizer import Tokenizer, load_tokenizer
from twinvec.ownership import MODEL
from twinvec.training.batches import Task, TokenTable, tokenize
from twinvec.training.checkpoint import START
from twinvec.training.dev_score import DevScore
from twinvec.training.network import Network, StaticNetwork, start_table
from twinvec.training.objectives import build_objective
from twinvec.training.processes import HEADS, Processes, seeded
from twinvec.training.recipe import DataPart, ModelPart, Recipe
from twinvec.training.recipe_file import recipe_as_toml, with_file_names
from twinvec.training.teachers import teacher_vectors
from twinvec.types import Array, Ids, Vectors

__all__ = ["Prepared", "prepare", "read_inputs", "shrink_model"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 512


@dataclass(frozen=True)
class Inputs:
    """The start model and data of a recipe. ``identity`` covers everything that the result depends on."""

    folder: ModelFolder
    data: tuple[Examples, ...]
    dev: Examples | None
    test: tuple[Examples, ...]
    identity: dict[str, str]


@dataclass(frozen=True)
class Prepared:
    """The network, training tasks, and dev and test scores of a run."""

    network: Network | StaticNetwork
    tasks: tuple[Task, ...]
    dev: DevScore | None
    test: tuple[DevScore, ...]


def read_inputs(recipe: Recipe) -> Inputs:
    """Read all files of a recipe except weights, so that errors in them appear early."""
    folder = start_folder(recipe.model)
    data = tuple(read_examples(part.source) for part in recipe.data)
    dev = read_examples(recipe.dev.source) if recipe.dev else None
    # Test data do not affect the result.
    named = {"recipe": recipe_as_toml(with_file_names(replace(recipe, test=())))}
    named["start model"] = model_digest(folder.path)
    teachers = dict.fromkeys(teacher for part in recipe.data for teacher in part.teachers)
    named |= {f"teacher {Path(name).name}": model_digest(find_model(name)) for name in teachers}
    read = [*data, *([dev] if dev else [])]
    named |= {f"data {index} ({each.name})": each.digest() for index, each in enumerate(read, start=1)}
    return Inputs(folder, data, dev, tuple(read_examples(source) for source in recipe.test), named)


def prepare(recipe: Recipe, inputs: Inputs, *, work: Path, processes: Processes) -> Prepared:
    """Load the network and tokenize. The folder ``work`` caches the pruned start model and the teachers' vectors."""
    part = recipe.model
    folder = _pruned(part, inputs.folder, work=work, processes=processes)
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    network: Network | StaticNetwork | None = None
    if not part.static:
        network = Network(folder, trust_pickle=part.trust_pickle, dropout=recipe.training.dropout)
    max_tokens = _max_tokens(part, folder, network.n_positions if network else None)
    tokens = partial(_tokens, tokenizer=tokenizer, max_tokens=max_tokens, warns=processes.is_first)
    tables = [tokens(examples) for examples in inputs.data]
    if network is None:
        network = _static(part, folder, tokenizer, tables)
    network.folder = replace(network.folder, max_tokens=max_tokens)
    tasks = []
    for index, (data, examples, table) in enumerate(zip(recipe.data, inputs.data, tables, strict=True)):
        teachers = teacher_vectors(
            data.teachers, examples.texts, precision=data.teacher_precision, work=work, processes=processes
        )
        with seeded(HEADS, recipe.training.seed, index):  # the initial weights of an objective's head
            objective = _objective(data, examples, network.width, teachers)
        tasks.append(Task(examples, table, objective, data.share, teachers))
    return Prepared(
        network=network,
        tasks=tuple(tasks),
        dev=DevScore(inputs.dev, tokens(inputs.dev)) if inputs.dev else None,
        test=tuple(DevScore(examples, tokens(examples)) for examples in inputs.test),
    )


def _static(part: ModelPart, folder: ModelFolder, tokenizer: Tokenizer, tables: Sequence[TokenTable]) -> StaticNetwork:
    """A table of token vectors, initialized with the start model's vector of each token."""
    assert part.static is not None
    counts = sum(np.bincount(table.ids, minlength=tokenizer.n_vocabulary) for table in tables)
    return StaticNetwork(folder, tokenizer, start_table(folder, tokenizer, part.static, np.asarray(counts)))


def start_folder(part: ModelPart) -> ModelFolder:
    """The start model, with the pooling and max_tokens of the recipe."""
    folder = read_model_folder(find_model(part.start))
    if folder.is_static:
        raise InputError(
            f"{folder.path} is a static model, a table of token vectors, which cannot be trained further.",
            hint="Start from a model with a Transformer.",
        )
    if part.pooling is not None and folder.readout != Pooling((part.pooling,), folder.readout.include_prompt):
        if len(folder.modules) > 1 and any(hasattr(module, "folder") for module in folder.modules):
            raise InputError(
                f"{folder.path} has layers after its pooling, so the pooling cannot change to {part.pooling!r}.",
                hint="Keep its pooling, or start from the backbone alone.",
            )
        folder = replace(folder, modules=(Pooling((part.pooling,)), *folder.modules[1:]))
    return replace(folder, max_tokens=part.max_tokens or folder.max_tokens)


def _pruned(part: ModelPart, folder: ModelFolder, *, work: Path, processes: Processes) -> ModelFolder:
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


def _max_tokens(part: ModelPart, folder: ModelFolder, limit: int | None) -> int:
    if part.max_tokens and limit and part.max_tokens > limit:
        raise InputError(f"max_tokens is {part.max_tokens}, but the limit of {folder.path} is {limit}.")
    return min(folder.max_tokens or limit or DEFAULT_MAX_TOKENS, limit or DEFAULT_MAX_TOKENS)


def _tokens(examples: Examples, *, tokenizer: Tokenizer, max_tokens: int, warns: bool) -> TokenTable:
    table = tokenize(examples.texts, tokenizer, max_tokens)
    if table.n_cut and warns:
        share = f"{table.n_cut:,} of {len(table):,}"
        logger.warning("%s: %s texts have more than %s tokens and are truncated.", examples.name, share, max_tokens)
    return table


def _objective(part: DataPart, examples: Examples, width: int, teachers: Sequence[Vectors]) -> nn.Module:
    return build_objective(
        part.objective,
        width=width,
        options=part.options,
        n_labels=len(examples.labels),
        teacher_widths=[each.shape[1] for each in teachers],
        matryoshka=part.matryoshka,
    )


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
