"""Semantic textual similarity: does a similarity of vectors order pairs as people do?

SBERT (Reimers & Gurevych 2019, Table 1) and MTEB take Spearman over all pairs of a year together; SentEval averages
the Pearson of the subsets. The two are not comparable, so the protocol stands in every outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.choices import CORRELATIONS, Aggregation, Correlation, Similarity
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, check_choice, check_columns, check_finite, embed_once, numbered
from twinvec.types import Array
from twinvec.vectors import PAIRWISE, similarity_pairwise

__all__ = ["StsTask", "run_sts"]

TOGETHER: dict[Aggregation, str] = {
    "all": "all pairs together",
    "mean": "mean of the subsets",
    "weighted mean": "mean of the subsets, weighted by their pairs",
}


@dataclass(frozen=True)
class StsTask:
    """Pairs of texts with people's similarity scores; ``subsets`` names the subset of every pair, if there are any."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    gold: Sequence[float]
    subsets: Sequence[str] = ()

    def __post_init__(self) -> None:
        columns = {"left texts": self.left, "right texts": self.right, "gold scores": self.gold}
        if self.subsets:
            columns["subsets"] = self.subsets
        check_columns(self.name, columns, at_least=2)
        check_finite(self.name, self.gold, what="gold score")


def run_sts(
    task: StsTask,
    embed: Embed,
    *,
    statistic: Correlation = "spearman",
    similarity: Similarity = "cosine",
    aggregation: Aggregation = "all",
) -> list[Outcome]:
    """One outcome: the similarity of every pair beside its gold score, in the order of the task."""
    check_choice("statistic", statistic, known=CORRELATIONS)
    check_choice("similarity", similarity, known=PAIRWISE)
    check_choice("aggregation", aggregation, known=TOGETHER)
    left, right = embed_once(embed, task.left, task.right)
    groups, names = _subsets(task)
    return [
        Outcome(
            task=task.name,
            protocol=f"{statistic.capitalize()} of {similarity} x 100, {TOGETHER[aggregation]}",
            statistic=statistic,
            predicted=similarity_pairwise(left, right, similarity),
            gold=np.asarray(task.gold, dtype=np.float64),
            groups=groups,
            group_names=names,
            aggregation=aggregation,
        )
    ]


def _subsets(task: StsTask) -> tuple[Array | None, tuple[str, ...]]:
    if not task.subsets:
        return None, ()
    groups, names = numbered(task.subsets)
    return np.array(groups), names
