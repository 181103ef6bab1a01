"""Setup of the networks that encode one text at a time by its tokens: bi-encoders and static tables."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from twinvec.choices import TeacherSpace
from twinvec.data.examples import Examples
from twinvec.errors import InputError
from twinvec.model.folder import ModelFolder
from twinvec.model.tokenizer import Tokenizer, load_tokenizer
from twinvec.training.batches import TextTask, TokenTable, tokenize
from twinvec.training.dev_score import Cosines, DevScore
from twinvec.training.mined import scored_pairs
from twinvec.training.networks.bi_encoder import Network
from twinvec.training.networks.setup import Inputs
from twinvec.training.networks.start import pruned, with_projection
from twinvec.training.networks.static import StaticNetwork, start_table, stored_table
from twinvec.training.objectives import build_objective
from twinvec.training.processes import HEADS, Processes, seeded
from twinvec.training.recipe import DataPart, ModelPart
from twinvec.training.teachers import Axes, PrincipalVectors, principal_axes, similar_groups, teacher_vectors
from twinvec.types import Vectors

__all__ = ["TextSetup", "max_tokens", "vector_objective"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 512
N_FITTED = 20_000  # texts that decide the first weights of a projection


class TextSetup:
    """A bi-encoder, or a static table if the recipe has ``static`` or starts from one."""

    def __init__(self, inputs: Inputs, *, work: Path, processes: Processes) -> None:
        mined = (
            scored_pairs(part, examples, work=work, processes=processes) if part.is_mined else examples
            for part, examples in zip(inputs.recipe.data, inputs.data, strict=True)
        )
        inputs = replace(inputs, data=tuple(mined))
        self.inputs, self.work, self.processes = inputs, work, processes
        part = inputs.recipe.model
        folder = pruned(part, inputs.start, work=work, processes=processes)
        if part.projection:
            folder = with_projection(folder, work=work, processes=processes)
        self.axes: dict[str, Axes] = {}  # by teacher; those of the first data set with it
        self.tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
        is_table = bool(part.static) or folder.is_static
        network: Network | StaticNetwork | None = None if is_table else self.make_network(folder)
        self.max_tokens = max_tokens(part, folder, network.n_positions if network else None)
        self.tables = [self.tokens(examples) for examples in inputs.data]
        if network is None:
            network = _static(part, folder, self.tokenizer, self.tables)
        network.folder = replace(network.folder, max_tokens=self.max_tokens)
        self.network: Any = network  # of a kind that encodes rows of tokens

    def make_network(self, folder: ModelFolder) -> Network:
        """The network to train, unless it is a static table."""
        recipe = self.inputs.recipe
        return Network(folder, trust_pickle=recipe.model.trust_pickle, dropout=recipe.training.dropout)

    def task(self, index: int) -> TextTask:
        """The training task of data set ``index`` of the recipe."""
        recipe, examples = self.inputs.recipe, self.inputs.data[index]
        part = recipe.data[index]
        names = () if part.is_mined else part.teachers
        own = teacher_vectors(
            names, examples.texts, precision=part.teacher_precision, work=self.work, processes=self.processes
        )
        teachers = self.turned(names, own, part.teacher_space)
        if recipe.model.projection and index == 0:
            fit_projection(self.network, self.tables[0], teachers[0])
        with seeded(HEADS, recipe.training.seed, index):  # the initial weights of an objective's head
            objective = vector_objective(part, examples, self.network.width, teachers)
        groups = similar_groups(teachers[0], part.similar) if part.similar > 1 else None
        return TextTask(examples, self.tables[index], objective, part.share, teachers, groups)

    def turned(
        self, names: Sequence[str], vectors: Sequence[Vectors], space: TeacherSpace
    ) -> tuple[Vectors | PrincipalVectors, ...]:
        """The teachers' vectors in the space of the recipe."""
        if space == "own":
            return tuple(vectors)
        for name, own in zip(names, vectors, strict=True):
            if name not in self.axes:
                self.axes[name] = principal_axes(own)
        return tuple(PrincipalVectors(own, self.axes[name]) for name, own in zip(names, vectors, strict=True))

    def dev_score(self, examples: Examples) -> DevScore:
        """The score of the cosines of held-out examples."""
        tokens = self.tokens(examples)
        rows = np.arange(len(tokens))
        return DevScore(examples, lambda network: Cosines(network.encode(tokens.rows(rows))))

    def tokenize(self, texts: Sequence[str]) -> TokenTable:
        """The tokens of some texts, truncated to ``max_tokens``."""
        return tokenize(texts, self.tokenizer, self.max_tokens)

    def tokens(self, examples: Examples) -> TokenTable:
        """The tokens of all texts; warns if some are cut."""
        table = self.tokenize(examples.texts)
        if table.n_cut and self.processes.is_first:
            share = f"{table.n_cut:,} of {len(table):,}"
            most = self.max_tokens
            logger.warning("%s: %s texts have more than %s tokens and are truncated.", examples.name, share, most)
        return table


def _static(part: ModelPart, folder: ModelFolder, tokenizer: Tokenizer, tables: Sequence[TokenTable]) -> StaticNetwork:
    """A table of token vectors: that of a static start model, or one of its vectors of each token."""
    if folder.is_static:
        table = stored_table(folder, part.static, trust_pickle=part.trust_pickle)
        return StaticNetwork(folder, tokenizer, table)
    assert part.static is not None
    counts = sum(np.bincount(table.ids, minlength=tokenizer.n_vocabulary) for table in tables)
    return StaticNetwork(folder, tokenizer, start_table(folder, tokenizer, part.static, np.asarray(counts)))


def max_tokens(part: ModelPart, folder: ModelFolder, limit: int | None) -> int:
    """The most tokens of a text; ``limit`` is that of the network's positions."""
    if part.max_tokens and limit and part.max_tokens > limit:
        raise InputError(f"max_tokens is {part.max_tokens}, but the limit of {folder.path} is {limit}.")
    return min(folder.max_tokens or limit or DEFAULT_MAX_TOKENS, limit or DEFAULT_MAX_TOKENS)


def fit_projection(network: Network, table: TokenTable, teacher: Vectors | PrincipalVectors) -> None:
    """Set the projection, still the identity, to the best linear map from the vectors to a teacher's."""
    rows = np.linspace(0, len(table) - 1, min(N_FITTED, len(table))).astype(np.int64)
    own, target = network.encode(table.rows(rows)), np.asarray(teacher[rows], dtype=np.float32)
    if target.shape[1] != network.width:
        raise InputError(
            f"The first teacher's vectors have {target.shape[1]} values, and the projection has {network.width}.",
            hint="Put a teacher of the same width first, or remove projection.",
        )
    weights, *_ = np.linalg.lstsq(own, target, rcond=None)  # own @ weights = target
    network.set_projection(np.ascontiguousarray(weights.T))


def vector_objective(
    part: DataPart, examples: Examples, width: int, teachers: Sequence[Vectors | PrincipalVectors]
) -> nn.Module:
    """The objective of a data part over vectors of ``width``."""
    return build_objective(
        part.objective,
        width=width,
        options=part.options,
        n_labels=len(examples.labels),
        teacher_widths=[each.shape[1] for each in teachers],
        matryoshka=part.matryoshka,
    )
