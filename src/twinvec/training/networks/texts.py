"""Setup of the networks that encode one text at a time by its tokens: bi-encoders and static tables."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from twinvec.data.examples import Examples
from twinvec.errors import InputError
from twinvec.model.folder import ModelFolder
from twinvec.model.tokenizer import Tokenizer, load_tokenizer
from twinvec.training.batches import TextTask, TokenTable, tokenize
from twinvec.training.dev_score import Cosines, DevScore
from twinvec.training.mined import scored_pairs
from twinvec.training.networks.bi_encoder import Network
from twinvec.training.networks.setup import Inputs
from twinvec.training.networks.start import pruned
from twinvec.training.networks.static import StaticNetwork, start_table
from twinvec.training.objectives import build_objective
from twinvec.training.processes import HEADS, Processes, seeded
from twinvec.training.recipe import DataPart, ModelPart
from twinvec.training.teachers import teacher_vectors
from twinvec.types import Vectors

__all__ = ["TextSetup", "max_tokens", "vector_objective"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 512


class TextSetup:
    """A bi-encoder, or a static table if the recipe has ``static``."""

    def __init__(self, inputs: Inputs, *, work: Path, processes: Processes) -> None:
        mined = (
            scored_pairs(part, examples, work=work, processes=processes) if part.is_mined else examples
            for part, examples in zip(inputs.recipe.data, inputs.data, strict=True)
        )
        inputs = replace(inputs, data=tuple(mined))
        self.inputs, self.work, self.processes = inputs, work, processes
        part = inputs.recipe.model
        folder = pruned(part, inputs.start, work=work, processes=processes)
        self.tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
        network: Network | StaticNetwork | None = None if part.static else self.make_network(folder)
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
        teachers = teacher_vectors(
            () if part.is_mined else part.teachers,
            examples.texts,
            precision=part.teacher_precision,
            work=self.work,
            processes=self.processes,
        )
        with seeded(HEADS, recipe.training.seed, index):  # the initial weights of an objective's head
            objective = vector_objective(part, examples, self.network.width, teachers)
        return TextTask(examples, self.tables[index], objective, part.share, teachers)

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
    """A table of token vectors, initialized with the start model's vector of each token."""
    assert part.static is not None
    counts = sum(np.bincount(table.ids, minlength=tokenizer.n_vocabulary) for table in tables)
    return StaticNetwork(folder, tokenizer, start_table(folder, tokenizer, part.static, np.asarray(counts)))


def max_tokens(part: ModelPart, folder: ModelFolder, limit: int | None) -> int:
    """The most tokens of a text; ``limit`` is that of the network's positions."""
    if part.max_tokens and limit and part.max_tokens > limit:
        raise InputError(f"max_tokens is {part.max_tokens}, but the limit of {folder.path} is {limit}.")
    return min(folder.max_tokens or limit or DEFAULT_MAX_TOKENS, limit or DEFAULT_MAX_TOKENS)


def vector_objective(part: DataPart, examples: Examples, width: int, teachers: Sequence[Vectors]) -> nn.Module:
    """The objective of a data part over vectors of ``width``."""
    return build_objective(
        part.objective,
        width=width,
        options=part.options,
        n_labels=len(examples.labels),
        teacher_widths=[each.shape[1] for each in teachers],
        matryoshka=part.matryoshka,
    )
