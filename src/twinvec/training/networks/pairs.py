"""Setup of cross-encoders: pairs of texts as inputs, their training tasks, and their dev scores."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from twinvec.choices import ScoreActivation
from twinvec.data.examples import Examples
from twinvec.engine.config import read_backbone
from twinvec.errors import InputError, check_name
from twinvec.model.classifier import HEADS, Classifier, is_classifier, read_classifier
from twinvec.model.folder import ModelFolder
from twinvec.model.hub import find_model
from twinvec.model.tokenizer import WordReader, load_tokenizer
from twinvec.pairs.tokens import LongPairs, PairRowMaker, pair_template, reads_types
from twinvec.training.batches import LossOf, SampledSet
from twinvec.training.dev_score import DEV_SCORES, DevScore, Measure
from twinvec.training.networks.cross_encoder import CrossEncoderNetwork, HeadSettings, PairInput
from twinvec.training.networks.setup import Inputs
from twinvec.training.networks.start import pruned, start_folder
from twinvec.training.networks.texts import DEFAULT_MAX_TOKENS
from twinvec.training.objectives import PAIR_OBJECTIVES
from twinvec.training.objectives.scores import RankedScoresObjective, own_candidates
from twinvec.training.processes import Processes
from twinvec.training.recipe import ModelPart, Recipe
from twinvec.training.teachers import teacher_margins
from twinvec.types import Array, Ids, Vectors

__all__ = ["PairReader", "PairSetup", "PairTask", "read_pair_start"]

logger = logging.getLogger(__name__)

TEXTS_PER_CALL = 10_000
ONE_OUTPUT = ("LABEL_0",)  # as transformers names it


class PairReader:
    """Makes the inputs of a cross-encoder from pairs of some texts.

    ``lengths`` ``(texts,)`` counts their tokens, ``used_ids`` are all ids that occur.
    """

    def __init__(self, texts: Sequence[str], maker: PairRowMaker, *, has_types: bool) -> None:
        self.texts, self.maker, self._has_types = texts, maker, has_types
        counts, used = [np.zeros(0, dtype=np.int64)], [np.array(_template_ids(maker), dtype=np.int64)]
        for start in range(0, len(texts), TEXTS_PER_CALL):
            flat = maker.words.read(texts[start : start + TEXTS_PER_CALL])
            counts.append(flat.counts)
            used.append(np.unique(flat.ids))
        self.lengths: Ids = np.concatenate(counts)
        self.used_ids: Ids = np.unique(np.concatenate(used)).astype(np.int64)

    def rows(self, pairs: Ids) -> list[PairInput]:
        """The inputs of pairs, given as rows of the texts, ``(n, 2)``."""
        named = [(self.texts[first], self.texts[second]) for first, second in pairs]
        made = self.maker.rows(named, range(len(named)))
        types = [row.types if self._has_types else [0] * len(row.types) for row in made]
        return [
            PairInput(np.array(row.ids, dtype=np.int64), np.array(each, dtype=np.int64))
            for row, each in zip(made, types, strict=True)
        ]

    def n_tokens(self, first: Ids, second: Ids) -> Ids:
        """The tokens of texts ``(n,)`` with each of their candidates ``(n, c)``, before cutting, ``(n, c)``."""
        return np.asarray(self.lengths[first][:, None] + self.lengths[second] + self.maker.template.n_special)


def _template_ids(maker: PairRowMaker) -> list[int]:
    return [id for part in (maker.template.before, maker.template.between, maker.template.after) for id in part.ids]


@dataclass(frozen=True)
class PairTask:
    """Examples with their inputs and objective; ``targets`` ``(n,)``, if any, instead of those of the examples."""

    examples: Examples
    reader: PairReader
    objective: nn.Module
    share: float = 1.0
    targets: Array | None = None

    @cached_property
    def sampled(self) -> SampledSet:
        """The data set as seen by the sampler, without groups: equal texts in different pairs save no work."""
        found = own_candidates(self.examples.indices)
        n_tokens = np.minimum(self.reader.n_tokens(found.first, found.second), self.reader.maker.max_tokens)
        return SampledSet(n_tokens.sum(axis=1), None, self.share)

    @property
    def used_ids(self) -> Ids:
        """The token ids that occur in any pair, sorted."""
        return self.reader.used_ids

    def batch(self, rows: Ids) -> tuple[Sequence[PairInput], LossOf]:
        """The unique pairs of some examples, and the loss of their logits."""
        found = self.objective.candidates({role: each[rows] for role, each in self.examples.indices.items()})
        pairs, where = unique_pairs(found.first, found.second)
        more: dict[str, Array] = {}
        if found.is_copy is not None:
            more["is_copy"] = found.is_copy
        targets = self.examples.targets if self.targets is None else self.targets
        if targets is not None:
            more["target"] = targets[rows]
        return self.reader.rows(pairs), partial(self._loss, where=where, more=more)

    def _loss(self, logits: Tensor, *, where: Ids, more: Mapping[str, Array]) -> Tensor:
        """The loss; ``where`` ``(n, c)`` is the row of each pair among the ``logits``."""
        device = logits.device
        arguments = {name: torch.from_numpy(values).to(device) for name, values in more.items()}
        with torch.autocast(device.type, enabled=False):
            return self.objective(logits.float()[torch.from_numpy(where).to(device)], **arguments)


def unique_pairs(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """The unique pairs of texts ``(n,)`` with their candidates ``(n, c)``, and the row of each pair, ``(n, c)``.

    >>> pairs, where = unique_pairs(np.array([1, 1]), np.array([[2, 3], [3, 4]]))
    >>> pairs.tolist(), where.tolist()
    ([[1, 2], [1, 3], [1, 4]], [[0, 1], [1, 2]])
    """
    every = np.stack([np.broadcast_to(first[:, None], second.shape), second], axis=-1).reshape(-1, 2)
    pairs, where = np.unique(every, axis=0, return_inverse=True)
    return pairs, where.reshape(second.shape)


N_OTHERS = 20  # positives of other examples that an anchor's own is ranked among, without negatives


class PairScores:
    """The logits that a cross-encoder gives to pairs of texts."""

    def __init__(self, network: CrossEncoderNetwork, reader: PairReader) -> None:
        self.network, self.reader = network, reader

    def logits(self, first: Ids, second: Ids) -> Vectors:
        """The logits of texts with their candidates, ``(n,), (n, c) -> (n, c, labels)``."""
        pairs, where = unique_pairs(first, second)
        return self.network.score(self.reader.rows(pairs))[where]

    def of(self, first: Ids, second: Ids) -> Array:
        """The logit of each text with its partner, ``(n,), (n,) -> (n,)``."""
        return self.logits(first, second[:, None])[:, 0, 0]

    def all(self, first: Ids, second: Ids) -> Array:
        """The logit of each text with each other text, ``(n,), (m,) -> (n, m)``."""
        return self.logits(first, np.broadcast_to(second, (len(first), len(second))))[..., 0]


def label_accuracy(scores: PairScores, examples: Examples) -> float:
    """Percentage of pairs whose own label has the highest logit. Labels are matched by name."""
    found = own_candidates(examples.indices)
    numbers = np.array([scores.network.settings.labels.index(label) for label in examples.labels])
    guesses = scores.logits(found.first, found.second)[:, 0].argmax(axis=1)
    return 100 * float((guesses == numbers[examples.targets]).mean())


def first_among_candidates(scores: PairScores, examples: Examples) -> float:
    """Percentage of anchors whose own positive has a higher score than all its other candidates."""
    anchor, second, _ = own_candidates(examples.indices)
    is_copy = np.zeros(second.shape, dtype=bool)
    if "negative" not in examples.indices:
        others = _others(len(examples))
        second = np.concatenate([second, second[others, 0]], axis=1)
        is_copy = np.concatenate([is_copy, anchor[others] == anchor[:, None]], axis=1)
    is_copy |= (second == second[:, :1]) | (second == anchor[:, None])
    logits = scores.logits(anchor, second)[..., 0]
    rivals = np.where(is_copy, -np.inf, logits)[:, 1:]
    return 100 * float((logits[:, 0] > rivals.max(axis=1)).mean())


def _others(n: int) -> Ids:
    """For each of ``n`` rows, up to ``N_OTHERS`` different other rows, always the same."""
    count, rng = min(N_OTHERS, n - 1), np.random.default_rng(0)
    return np.stack([(row + 1 + rng.choice(n - 1, count, replace=False)) % n for row in range(n)])


def _measures(examples: Examples) -> dict[str, Measure]:
    among = "its negatives" if "negative" in examples.indices else f"{min(N_OTHERS, len(examples) - 1)} other positives"
    return {
        **DEV_SCORES,
        "ranked": Measure(f"first hit by {{score}} among {among}, %", first_among_candidates),
        "labelled_pairs": Measure("accuracy, %", label_accuracy),
    }


def read_pair_start(part: ModelPart) -> ModelFolder:
    """The start model: a cross-encoder, a sentence model or a backbone."""
    if part.special_tokens:
        raise InputError("A cross-encoder requires all special tokens.", hint="Remove special_tokens.")
    path = find_model(part.start)
    if is_classifier(path):
        if part.is_smaller:
            raise InputError(
                f"{path} is a cross-encoder, which cannot be pruned.",
                hint="Start from its backbone, or keep all layers.",
            )
        folder = read_classifier(path).folder
    else:
        folder = start_folder(part)
        check_name(f"architecture of a cross-encoder in {path}:", folder.config.get("model_type"), HEADS)
        if folder.lower_case:
            raise InputError(
                f"{path} lowercases texts outside of its tokenizer, which a cross-encoder cannot do.",
                hint="Start from another model.",
            )
    return folder


class PairSetup:
    """A cross-encoder."""

    def __init__(self, inputs: Inputs, *, work: Path, processes: Processes) -> None:
        self.inputs, self.work, self.processes = inputs, work, processes
        recipe, part = inputs.recipe, inputs.recipe.model
        start = read_classifier(inputs.start.path) if is_classifier(inputs.start.path) else None
        folder = inputs.start if start else pruned(part, inputs.start, work=work, processes=processes)
        settings = HeadSettings(_labels(recipe, inputs.data, start), _activation(recipe), recipe.training.seed)
        self.network = CrossEncoderNetwork(
            replace(folder, is_sentence_model=False),
            settings,
            start=start,
            trust_pickle=part.trust_pickle,
            dropout=recipe.training.dropout,
        )
        tokenizer = load_tokenizer(folder.backbone)
        template = pair_template(tokenizer, folder.backbone)
        limit = _max_tokens(part, start, self.network, least=template.n_special + 2)
        self.network.max_tokens = limit
        self.maker = PairRowMaker(WordReader(tokenizer), template, limit, "cut", LongPairs(limit))
        self.has_types = read_backbone(folder.config).n_types > 1 and reads_types(folder.backbone)

    def task(self, index: int) -> PairTask:
        """The training task of data set ``index`` of the recipe."""
        part, examples = self.inputs.recipe.data[index], self.inputs.data[index]
        objective = PAIR_OBJECTIVES[part.objective].build({}, part.options)
        if isinstance(objective, RankedScoresObjective):
            self._check_ranked(examples, objective)
        targets = None
        if part.teachers:
            precision, work, processes = part.teacher_precision, self.work, self.processes
            targets = teacher_margins(part.teachers, examples, precision=precision, work=work, processes=processes)
        return PairTask(examples, self._reader(examples), objective, part.share, targets)

    def _check_ranked(self, examples: Examples, objective: RankedScoresObjective) -> None:
        size = min(self.inputs.recipe.training.batch_size, len(examples))
        if "negative" not in examples.indices and not min(objective.in_batch, size - 1):
            raise InputError(
                f"{examples.name} has no negatives, and there are none in the batch: "
                f"in_batch is {objective.in_batch}, and a batch has {size} example{'s' * (size > 1)}.",
                hint="Add negatives, or use a larger batch_size with in_batch of at least 1.",
            )

    def dev_score(self, examples: Examples) -> DevScore:
        """The score of the logits of held-out examples."""
        labels = self.network.settings.labels
        if examples.kind == "labelled_pairs":
            for label in examples.labels:
                check_name(f"label in {examples.name} (not in the training data):", label, labels)
        elif len(labels) > 1:
            raise InputError(
                f"{examples.name} ({examples.kind}) needs one score per pair; this network has {len(labels)} labels.",
                hint="Use labelled_pairs as dev and test data.",
            )
        if examples.kind == "ranked" and len(examples) == 1 and "negative" not in examples.indices:
            raise InputError(f"{examples.name} has only one example, so there is nothing to rank.")
        reader = self._reader(examples)
        return DevScore(examples, lambda network: PairScores(network, reader), "score", _measures(examples))

    def _reader(self, examples: Examples) -> PairReader:
        """The inputs of some examples; warns if some pairs are cut."""
        reader = PairReader(examples.texts, self.maker, has_types=self.has_types)
        found, limit = own_candidates(examples.indices), self.maker.max_tokens
        n_tokens = reader.n_tokens(found.first, found.second)
        n_cut = int((n_tokens > limit).sum())
        if n_cut and self.processes.is_first:
            share = f"{n_cut:,} of {n_tokens.size:,}"
            logger.warning("%s: %s pairs have more than %s tokens and are truncated.", examples.name, share, limit)
        return reader


def _labels(recipe: Recipe, data: Sequence[Examples], start: Classifier | None) -> tuple[str, ...]:
    """The names of the network's outputs: the labels of the data, or one."""
    found = {examples.labels: part.objective for part, examples in zip(recipe.data, data, strict=True)}
    if len(found) > 1:
        raise InputError(
            f"The data sets require different outputs: {', '.join(str(list(labels) or 'one') for labels in found)}.",
            hint="Give all data sets the same labels, or train on one kind.",
        )
    labels = next(iter(found))
    if len(labels) == 1:
        raise InputError(f"All pairs have the label {labels[0]!r}.", hint="Use data with at least two labels.")
    if labels:
        return labels
    return start.labels if start and len(start.labels) == 1 else ONE_OUTPUT


def _activation(recipe: Recipe) -> ScoreActivation:
    """How scores are made from logits; ``ranking`` fits any, and has sigmoid alone."""
    kinds = {part.objective: PAIR_OBJECTIVES[part.objective].objective.activation for part in recipe.data}
    fixed = {name: kind for name, kind in kinds.items() if kind is not None}
    if len(set(fixed.values())) > 1:
        raise InputError(
            f"The objectives {', '.join(fixed)} give the logits different meanings: "
            f"{', '.join(f'{name} {kind}' for name, kind in fixed.items())}.",
            hint="Use objectives with the same activation; ranking goes with all.",
        )
    activation: ScoreActivation = next(iter(fixed.values()), "sigmoid")
    return activation


def _max_tokens(part: ModelPart, start: Classifier | None, network: CrossEncoderNetwork, *, least: int) -> int:
    """The most tokens of a pair: the recipe's, the start model's if it reads pairs, or as many as it has positions."""
    limit = network.n_positions or DEFAULT_MAX_TOKENS
    if part.max_tokens and not least <= part.max_tokens <= limit:
        raise InputError(f"max_tokens must be from {least} to {limit} for pairs and this model, got {part.max_tokens}.")
    own = start.folder.max_tokens if start else None
    return part.max_tokens or min(own or DEFAULT_MAX_TOKENS, limit)
