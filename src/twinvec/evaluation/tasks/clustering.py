"""Clustering: do k-means clusters of the vectors follow the labels of the texts? Judged by the V-measure."""

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
    """Texts with labels, which are used only to count the clusters and to score them."""

    name: str
    texts: Sequence[str]
    labels: Sequence[str]

    def __post_init__(self) -> None:
        check_columns(self.name, {"texts": self.texts, "labels": self.labels}, at_least=2)
        if len(set(self.labels)) < 2:
            raise InputError(f"{self.name}: all labels are {self.labels[0]!r}.", hint="Give at least two.")
        if len(set(self.texts)) < len(set(self.labels)):
            raise InputError(f"{self.name}: fewer different texts than labels, so there are no such clusters.")


def run_clustering(task: ClusteringTask, embed: Embed, *, seed: int = 0) -> list[Outcome]:
    """One outcome: the cluster of every text beside its label, with as many clusters as labels."""
    cluster = require("sklearn.cluster", extra="eval", feature="Clustering")
    (vectors,) = embed_once(embed, task.texts)
    numbers, names = numbered(task.labels)
    # Not twinvec.cluster's, which is spherical: published V-measures are of scikit-learn's k-means, by distance.
    found = cluster.KMeans(n_clusters=len(names), n_init=N_STARTS, random_state=seed).fit_predict(vectors)
    return [
        Outcome(
            task=task.name,
            protocol=f"V-measure x 100, k-means with k = {len(names)} labels, best of {N_STARTS} starts, seed {seed}",
            statistic="v_measure",
            predicted=np.asarray(found, dtype=np.int64),
            gold=np.array(numbers),
        )
    ]
