"""Clustering: the V-measure between k-means clusters of the vectors and the labels of the texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, check_columns, embed_once, numbered
from twinvec.extras import require

__all__ = ["ClusteringTask", "run_clustering"]

N_STARTS = 10


@dataclass(frozen=True)
class ClusteringTask:
    """Texts with labels, which are used only for the number of clusters and the score."""

    name: str
    texts: Sequence[str]
    labels: Sequence[str]

    def __post_init__(self) -> None:
        check_columns(self.name, {"texts": self.texts, "labels": self.labels}, at_least=2)
        if len(set(self.labels)) < 2:
            raise InputError(f"{self.name}: all labels are {self.labels[0]!r}.", hint="Use at least two labels.")
        if len(set(self.texts)) < len(set(self.labels)):
            raise InputError(
                f"{self.name}: {len(set(self.texts))} distinct texts cannot form {len(set(self.labels))} clusters, "
                "one per label.",
                hint="Use more texts or fewer labels.",
            )


def run_clustering(task: ClusteringTask, embed: Embed, *, seed: int = 0) -> list[Outcome]:
    """Return one outcome: the cluster and label of every text, with one cluster per label."""
    cluster = require("sklearn.cluster", extra="eval", feature="Clustering")
    (vectors,) = embed_once(embed, task.texts)
    numbers, names = numbered(task.labels)
    # Not twinvec.cluster, whose k-means is spherical: published V-measures use scikit-learn's Euclidean k-means.
    clusters = cluster.KMeans(n_clusters=len(names), n_init=N_STARTS, random_state=seed).fit_predict(vectors)
    return [
        Outcome(
            task=task.name,
            protocol=f"V-measure x 100, k-means with k = {len(names)} labels, best of {N_STARTS} starts, seed {seed}",
            statistic="v_measure",
            predicted=np.asarray(clusters, dtype=np.int64),
            gold=np.array(numbers),
        )
    ]
