"""Prepare a recipe for the loop: read its files, load the network, tokenize, and identify the run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from twinvec.data.examples import Examples, read_examples
from twinvec.errors import InputError
from twinvec.model.folder import ModelFolder, Pooling, read_model_folder
from twinvec.model.hub import find_model
from twinvec.model.identity import model_digest
from twinvec.model.tokenizer import Tokenizer, load_tokenizer
from twinvec.training.batches import Task, TokenTable, tokenize
from twinvec.training.checkpoint import START
from twinvec.training.dev_score import DevScore
from twinvec.training.network import Network, StaticNetwork, start_table
from twinvec.training.objectives import build_objective
from twinvec.training.processes import HEADS, Processes, seeded
from twinvec.training.prune import shrink_model
from twinvec.training.recipe import DataPart, ModelPart, Recipe
from twinvec.training.recipe_file import recipe_as_toml, with_file_names
from twinvec.training.teachers import teacher_vectors
from twinvec.types import Vectors

__all__ = ["Prepared", "prepare", "read_inputs"]

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
