"""Triplet accuracy: is the anchor nearer to its positive than to its negative? (SBERT's Table 4.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.tasks.checks import check_choice, check_columns
from twinvec.evaluate.tasks.embed import Embed, embed_once
from twinvec.types import Similarity
from twinvec.vectors import PAIRWISE, similarity_pairwise

__all__ = ["TripletTask", "run_triplets"]


@dataclass(frozen=True)
class TripletTask:
    """An anchor, a positive that should be near it and a negative that should be farther, row by row."""

    name: str
    anchors: Sequence[str]
    positives: Sequence[str]
    negatives: Sequence[str]

    def __post_init__(self) -> None:
        columns = {"anchors": self.anchors, "positives": self.positives, "negatives": self.negatives}
        check_columns(self.name, columns)

    def __len__(self) -> int:
        return len(self.anchors)


def run_triplets(
    task: TripletTask, embed: Embed, *, similarities: Sequence[Similarity] = ("cosine", "euclidean", "manhattan")
) -> list[Outcome]:
    """An outcome per similarity: 1 for each triplet whose positive is strictly nearer, else 0. A tie is wrong."""
    for name in similarities:
        check_choice("similarity", name, known=PAIRWISE)
    anchors, positives, negatives = embed_once(embed, task.anchors, task.positives, task.negatives)
    outcomes = []
    for name in similarities:
        nearer = similarity_pairwise(anchors, positives, name) > similarity_pairwise(anchors, negatives, name)
        outcomes.append(
            Outcome(
                task=task.name,
                protocol=f"Triplet accuracy x 100 by {name}, a tie counts as wrong",
                statistic="mean",
                predicted=nearer.astype(np.float64),
            )
        )
    return outcomes
