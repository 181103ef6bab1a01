"""From a recipe to what the loop needs: the network, the tasks, the judges, and what makes this run this run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from twinvec.engine.weights import weight_files
from twinvec.errors import InputError
from twinvec.examples import DataSource, Examples, read_examples
from twinvec.files import digest_files
from twinvec.hub import find_model
from twinvec.model_folder import ModelFolder, Pooling, read_model_folder
from twinvec.text import Tokenizer, load_tokenizer
from twinvec.train.judging import Judge
from twinvec.train.network import Network
from twinvec.train.objectives import build_objective
from twinvec.train.processes import Processes
from twinvec.train.randomness import HEADS, drawn_from
from twinvec.train.recipe import DataPart, ModelPart, Recipe
from twinvec.train.recipe_file import recipe_as_toml
from twinvec.train.task import Task
from twinvec.train.teaching import teacher_vectors
from twinvec.train.tokens import TokenTable, tokenize
from twinvec.types import Vectors

__all__ = ["Prepared", "prepare"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 512


@dataclass(frozen=True)
class Prepared:
    """A recipe with its files read. ``identity`` names all that the result depends on."""

    network: Network
    tasks: tuple[Task, ...]
    dev: Judge | None
    test: tuple[Judge, ...]
    identity: dict[str, str]


def prepare(recipe: Recipe, work: Path, processes: Processes) -> Prepared:
    """Read the model and all data. What costs time to make (a teacher's vectors) is kept in the folder ``work``."""
    folder = start_folder(recipe.model)
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    read = [read_examples(part.source) for part in recipe.data]  # all files first: errors in them show early
    judged = [read_examples(source) for source in _judged(recipe)]
    network = Network(folder, dropout=recipe.training.dropout)
    max_tokens = min(folder.max_tokens or DEFAULT_MAX_TOKENS, network.backbone.n_positions or DEFAULT_MAX_TOKENS)
    network.folder = replace(network.folder, max_tokens=max_tokens)
    judges = [Judge(examples, _tokens(examples, tokenizer, max_tokens)) for examples in judged]
    tasks = []
    for place, (part, examples) in enumerate(zip(recipe.data, read, strict=True)):
        teacher = teacher_vectors(part.teachers, examples.texts, work, processes) if part.teachers else None
        with drawn_from(HEADS, recipe.training.seed, place):  # the weights that a head starts from
            objective = _objective(part, examples, network.width, teacher)
        tasks.append(Task(examples, _tokens(examples, tokenizer, max_tokens), objective, part.share, teacher))
    return Prepared(
        network=network,
        tasks=tuple(tasks),
        dev=judges[0] if recipe.dev else None,
        test=tuple(judges[1 if recipe.dev else 0 :]),
        identity=_identity(recipe, folder, [*read, *judged]),
    )


def start_folder(part: ModelPart) -> ModelFolder:
    """The folder to start from, with the pooling and length of the recipe."""
    folder = read_model_folder(find_model(part.start))
    if part.pooling is not None and folder.pooling.modes != (part.pooling,):
        if len(folder.modules) > 1 and any(hasattr(module, "folder") for module in folder.modules):
            raise InputError(
                f"{folder.path} has layers behind its pooling, so it cannot change to {part.pooling!r}.",
                hint="Leave the pooling as it is, or start from the bare backbone.",
            )
        folder = replace(folder, modules=(Pooling((part.pooling,)), *folder.modules[1:]))
    return replace(folder, max_tokens=part.max_tokens or folder.max_tokens)


def _judged(recipe: Recipe) -> list[DataSource]:
    return [*([recipe.dev.source] if recipe.dev else []), *recipe.test]


def _tokens(examples: Examples, tokenizer: Tokenizer, max_tokens: int) -> TokenTable:
    table = tokenize(examples.texts, tokenizer, max_tokens)
    if table.n_cut:
        logger.warning(
            "%s: %s of %s texts have more than %s tokens, and are cut.",
            examples.name,
            f"{table.n_cut:,}",
            f"{len(table):,}",
            max_tokens,
        )
    return table


def _objective(part: DataPart, examples: Examples, width: int, teacher: Vectors | None) -> nn.Module:
    return build_objective(
        part.objective,
        width=width,
        options=part.options,
        n_labels=len(examples.labels),
        teacher_width=0 if teacher is None else teacher.shape[1],
        matryoshka=part.matryoshka,
    )


def _identity(recipe: Recipe, folder: ModelFolder, examples: Sequence[Examples]) -> dict[str, str]:
    """What must be equal for a checkpoint to be continued, each under the name that a message gives it."""
    named = {"recipe": recipe_as_toml(recipe), "start model": digest_files(weight_files(folder.backbone))}
    return named | {f"data {place} ({each.name})": each.digest() for place, each in enumerate(examples, start=1)}
