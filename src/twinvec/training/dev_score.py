"""The dev score: how well a network does on held-out examples. It decides which weights are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from twinvec.data.examples import Examples
from twinvec.errors import InputError, TrainingError, UnknownNameError
from twinvec.metrics import spearman
from twinvec.training.batches import TokenTable
from twinvec.training.network import Network, StaticNetwork
from twinvec.types import Array, Vectors
from twinvec.vectors import similarity_pairwise, unit_rows

__all__ = ["DEV_SCORES", "DevScore"]


def spearman_of_cosine(vectors: Mapping[str, Vectors], gold: Array) -> float:
    """100 times the Spearman correlation of cosine and gold score."""
    return 100 * spearman(similarity_pairwise(vectors["text1"], vectors["text2"]), gold)


def triplet_accuracy(vectors: Mapping[str, Vectors], _: Array) -> float:
    """Percentage of triplets whose positive has a higher cosine with the anchor than the negative."""
    near = similarity_pairwise(vectors["anchor"], vectors["positive"])
    return 100 * float((near > similarity_pairwise(vectors["anchor"], vectors["negative"])).mean())


def first_hit_rate(vectors: Mapping[str, Vectors], _: Array) -> float:
    """Percentage of anchors whose own positive has the highest cosine of all positives."""
    anchors, positives = unit_rows(vectors["anchor"]), unit_rows(vectors["positive"])
    own = (anchors * positives).sum(axis=1)
    n_hits = 0
    for start in range(0, len(anchors), 512):
        part = slice(start, start + 512)
        scores = anchors[part] @ positives.T
        # Copies of the own positive have the same score up to rounding, and do not count as misses.
        n_hits += int((scores.max(axis=1) <= own[part] + 1e-6).sum())
    return 100 * n_hits / len(anchors)


# Kind of examples -> name of the score and its function.
DEV_SCORES: dict[str, tuple[str, Callable[[Mapping[str, Vectors], Array], float]]] = {
    "scored_pairs": ("Spearman x 100 of cosine", spearman_of_cosine),
    "triplets": ("accuracy by cosine, %", triplet_accuracy),
    "ranked": ("first hit by cosine, %", first_hit_rate),
}


@dataclass(frozen=True)
class DevScore:
    """Held-out examples with their tokens; their kind determines the score."""

    examples: Examples
    tokens: TokenTable

    def __post_init__(self) -> None:
        if self.examples.kind not in DEV_SCORES:
            raise UnknownNameError("kind of dev examples:", self.examples.kind, DEV_SCORES)
        targets = self.examples.targets
        if self.examples.kind == "scored_pairs" and (targets is None or targets.min() == targets.max()):
            raise InputError(
                f"All {len(self.examples)} scores in {self.examples.name} are equal, so a correlation is undefined.",
                hint="Use a file with different scores.",
            )

    @property
    def protocol(self) -> str:
        """The name of the score."""
        return DEV_SCORES[self.examples.kind][0]

    def score(self, network: Network | StaticNetwork) -> float:
        """Score the network; higher is better. Raises an error if all its vectors are equal."""
        vectors = network.encode(self.tokens.rows(np.arange(len(self.tokens))))
        by_role = {role: vectors[indices] for role, indices in self.examples.indices.items()}
        targets = self.examples.targets
        try:
            return DEV_SCORES[self.examples.kind][1](by_role, np.empty(0) if targets is None else targets)
        except InputError as error:
            raise TrainingError(
                f"The model gives all pairs of {self.examples.name} the same score: {error.problem}",
                hint="It has collapsed, or is not a language model; try a lower learning rate.",
            ) from error
