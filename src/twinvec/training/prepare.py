"""From a recipe to what the loop needs: the network, the tasks, dev and test data, and the identity of the run."""

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
from twinvec.training.processes import HEADS, Processes, drawn_from
from twinvec.training.prune import shrink_model
from twinvec.training.recipe import DataPart, ModelPart, Recipe
from twinvec.training.recipe_file import recipe_as_toml, with_bare_names
from twinvec.training.teachers import teacher_vectors
from twinvec.types import Vectors

__all__ = ["Material", "Prepared", "prepare", "read_material"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 512


@dataclass(frozen=True)
class Material:
    """A recipe with its files read. ``identity`` names all that the result depends on."""

    folder: ModelFolder
    data: tuple[Examples, ...]
    dev: Examples | None
    test: tuple[Examples, ...]
    identity: dict[str, str]


@dataclass(frozen=True)
class Prepared:
    """What the loop and the dev scores need."""

    network: Network | StaticNetwork
    tasks: tuple[Task, ...]
    dev: DevScore | None
    test: tuple[DevScore, ...]


def read_material(recipe: Recipe) -> Material:
    """Read all files of a recipe but the weights, so that errors in them show early."""
    folder = start_folder(recipe.model)
    data = tuple(read_examples(part.source) for part in recipe.data)
    dev = read_examples(recipe.dev.source) if recipe.dev else None
    # What the result is only tested on has no part in it.
    named = {"recipe": recipe_as_toml(with_bare_names(replace(recipe, test=())))}
    named["start model"] = model_digest(folder.path)
    teachers = dict.fromkeys(teacher for part in recipe.data for teacher in part.teachers)
    named |= {f"teacher {Path(name).name}": model_digest(find_model(name)) for name in teachers}
    read = [*data, *([dev] if dev else [])]
    named |= {f"data {index} ({each.name})": each.digest() for index, each in enumerate(read, start=1)}
    return Material(folder, data, dev, tuple(read_examples(source) for source in recipe.test), named)


def prepare(recipe: Recipe, material: Material, *, work: Path, processes: Processes) -> Prepared:
    """Load the network and tokenize. What costs time to make (teachers' vectors) is kept in the folder ``work``."""
    folder = _smaller(recipe.model, material.folder, work=work, processes=processes)
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    network = None if recipe.model.static else _transformer(recipe, folder)
    max_tokens = _max_tokens(recipe.model, folder, network.n_positions if network else None)
    tokens = partial(_tokens, tokenizer=tokenizer, max_tokens=max_tokens, is_said=processes.is_first)
    tables = [tokens(examples) for examples in material.data]
    if network is None:
        network = _static(recipe.model, folder, tokenizer, tables)
    network.folder = replace(network.folder, max_tokens=max_tokens)
    tasks = []
    for index, (part, examples, table) in enumerate(zip(recipe.data, material.data, tables, strict=True)):
        teachers = teacher_vectors(
            part.teachers, examples.texts, precision=part.teacher_precision, work=work, processes=processes
        )
        with drawn_from(HEADS, recipe.training.seed, index):  # the weights that a head starts from
            objective = _objective(part, examples, network.width, teachers)
        tasks.append(Task(examples, table, objective, part.share, teachers))
    return Prepared(
        network=network,
        tasks=tuple(tasks),
        dev=DevScore(material.dev, tokens(material.dev)) if material.dev else None,
        test=tuple(DevScore(examples, tokens(examples)) for examples in material.test),
    )


def _transformer(recipe: Recipe, folder: ModelFolder) -> Network:
    return Network(folder, trust_pickle=recipe.model.trust_pickle, dropout=recipe.training.dropout)


def _static(part: ModelPart, folder: ModelFolder, tokenizer: Tokenizer, tables: Sequence[TokenTable]) -> StaticNetwork:
    """A table of token vectors that starts from what the start model says of each token alone."""
    assert part.static is not None
    counts = sum(np.bincount(table.ids, minlength=tokenizer.n_vocabulary) for table in tables)
    return StaticNetwork(folder, tokenizer, start_table(folder, tokenizer, part.static, np.asarray(counts)))


def start_folder(part: ModelPart) -> ModelFolder:
    """The folder to start from, with the pooling and length of the recipe."""
    folder = read_model_folder(find_model(part.start))
    if folder.is_static:
        raise InputError(
            f"{folder.path} is a static model, a table of token vectors, which this training does not change.",
            hint="Start from a model that has a Transformer.",
        )
    if part.pooling is not None and folder.readout != Pooling((part.pooling,), folder.readout.include_prompt):
        if len(folder.modules) > 1 and any(hasattr(module, "folder") for module in folder.modules):
            raise InputError(
                f"{folder.path} has layers behind its pooling, so it cannot change to {part.pooling!r}.",
                hint="Leave the pooling as it is, or start from the bare backbone.",
            )
        folder = replace(folder, modules=(Pooling((part.pooling,)), *folder.modules[1:]))
    return replace(folder, max_tokens=part.max_tokens or folder.max_tokens)


def _smaller(part: ModelPart, folder: ModelFolder, *, work: Path, processes: Processes) -> ModelFolder:
    """The part of the start model that the recipe keeps, written once into ``work``."""
    if not part.is_smaller:
        return folder
    small = work / START
    make = partial(
        shrink_model,
        folder,
        small,
        layers=part.layers,
        n_inner=part.feed_forward,
        special_tokens=part.special_tokens,
    )

    def make_once() -> None:
        if not small.is_dir():
            work.mkdir(parents=True, exist_ok=True)
            make(trust_pickle=part.trust_pickle)

    processes.first(make_once)
    return start_folder(replace(part, start=str(small)))


def _max_tokens(part: ModelPart, folder: ModelFolder, limit: int | None) -> int:
    if part.max_tokens and limit and part.max_tokens > limit:
        raise InputError(f"{folder.path} reads at most {limit} tokens, but max_tokens is {part.max_tokens}.")
    return min(folder.max_tokens or limit or DEFAULT_MAX_TOKENS, limit or DEFAULT_MAX_TOKENS)


def _tokens(examples: Examples, *, tokenizer: Tokenizer, max_tokens: int, is_said: bool) -> TokenTable:
    table = tokenize(examples.texts, tokenizer, max_tokens)
    if table.n_cut and is_said:
        logger.warning(
            "%s: %s of %s texts have more than %s tokens, and are cut.",
            examples.name,
            f"{table.n_cut:,}",
            f"{len(table):,}",
            max_tokens,
        )
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
