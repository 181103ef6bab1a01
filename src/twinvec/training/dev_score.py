"""The dev score: how well a network does on held-out examples. It decides which weights are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from twinvec.choices import NetworkKind
from twinvec.data.examples import Examples
from twinvec.errors import InputError, TrainingError, UnknownNameError
from twinvec.metrics import spearman
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import similarity_pairwise, unit_rows

__all__ = ["DEV_SCORES", "Cosines", "DevScore", "Measure", "Scores", "dev_kinds"]


class Scores(Protocol):
    """The scores that a network gives to pairs of texts. Texts are rows of ``Examples.texts``."""

    def of(self, first: Ids, second: Ids) -> Array:
        """The score of each text with its partner, ``(n,), (n,) -> (n,)``."""
        ...

    def all(self, first: Ids, second: Ids) -> Array:
        """The score of each text with each other text, ``(n,), (m,) -> (n, m)``."""
        ...


class Cosines:
    """Cosines of vectors, ``(texts, width)``."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    @cached_property
    def _units(self) -> Vectors:
        return unit_rows(self.vectors)

    def of(self, first: Ids, second: Ids) -> Array:
        """The cosine of each text with its partner, ``(n,), (n,) -> (n,)``."""
        return similarity_pairwise(self.vectors[first], self.vectors[second])

    def all(self, first: Ids, second: Ids) -> Array:
        """The cosine of each text with each other text, ``(n,), (m,) -> (n, m)``."""
        return np.asarray(self._units[first] @ self._units[second].T)


def rank_correlation(scores: Scores, examples: Examples) -> float:
    """100 times the Spearman correlation of score and gold score."""
    assert examples.targets is not None
    return 100 * spearman(scores.of(examples.indices["text1"], examples.indices["text2"]), examples.targets)


def triplet_accuracy(scores: Scores, examples: Examples) -> float:
    """Percentage of triplets whose positive has a higher score with the anchor than the negative."""
    anchors, positives, negatives = (examples.indices[role] for role in ("anchor", "positive", "negative"))
    return 100 * float((scores.of(anchors, positives) > scores.of(anchors, negatives)).mean())


ANCHORS_PER_BLOCK = 512
ROUNDING = 1e-6


def first_hit_rate(scores: Scores, examples: Examples) -> float:
    """Percentage of anchors whose own positive has the highest score of all positives."""
    anchors, positives = examples.indices["anchor"], examples.indices["positive"]
    n_hits = 0
    for start in range(0, len(anchors), ANCHORS_PER_BLOCK):
        block = scores.all(anchors[start : start + ANCHORS_PER_BLOCK], positives)
        own = block[np.arange(len(block)), start + np.arange(len(block))]
        # Copies of the own positive have the same score up to rounding, and do not count as misses.
        n_hits += int((block.max(axis=1) <= own + ROUNDING).sum())
    return 100 * n_hits / len(anchors)


class Measure(NamedTuple):
    """The name of a dev score, with a place for the name of the network's scores, and its function."""

    name: str
    of: Callable[[Any, Examples], float]  # takes the Scores of a network


# By kind of examples.
DEV_SCORES: dict[str, Measure] = {
    "scored_pairs": Measure("Spearman x 100 of {score}", rank_correlation),
    "triplets": Measure("accuracy by {score}, %", triplet_accuracy),
    "ranked": Measure("first hit by {score}, %", first_hit_rate),
}
MORE_KINDS: dict[NetworkKind, tuple[str, ...]] = {"cross-encoder": ("labelled_pairs",)}


def dev_kinds(network: NetworkKind) -> tuple[str, ...]:
    """The kinds of examples that can be dev or test data of a network."""
    return (*DEV_SCORES, *MORE_KINDS.get(network, ()))


@dataclass(frozen=True)
class DevScore:
    """Held-out examples, whose kind determines the score. ``scores`` runs a network on their texts."""

    examples: Examples
    scores: Callable[[Any], Scores]  # takes the network
    score_name: str = "cosine"
    measures: Mapping[str, Measure] = field(default_factory=lambda: DEV_SCORES)  # by kind of examples

    def __post_init__(self) -> None:
        if self.examples.kind not in self.measures:
            raise UnknownNameError("kind of dev examples:", self.examples.kind, self.measures)
        targets = self.examples.targets
        if self.examples.kind == "scored_pairs" and (targets is None or targets.min() == targets.max()):
            raise InputError(
                f"All {len(self.examples)} scores in {self.examples.name} are equal, so a correlation is undefined.",
                hint="Use a file with different scores.",
            )

    @property
    def protocol(self) -> str:
        """The name of the score."""
        return self.measures[self.examples.kind].name.format(score=self.score_name)

    def score(self, network: Any) -> float:  # noqa: ANN401 - a network of the kind that ``scores`` takes
        """Score the network; higher is better. Raises an error if all its scores are equal."""
        try:
            return self.measures[self.examples.kind].of(self.scores(network), self.examples)
        except InputError as error:
            raise TrainingError(
                f"The model gives all pairs of {self.examples.name} the same score: {error.problem}",
                hint="It has collapsed, or is not a language model; try a lower learning rate.",
            ) from error
