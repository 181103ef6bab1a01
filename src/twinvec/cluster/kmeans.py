"""Spherical k-means: rows are assigned to clusters by cosine with the mean direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least
from twinvec.search.measures import unit_rows_of
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import numeric_rows, unit_rows

__all__ = ["KMeans", "KMeansSettings", "nonempty_rows"]


def nonempty_rows(vectors: ArrayLike) -> Array:
    """Return vectors as an array ``(n, width)``, or raise an error if there are none."""
    rows = numeric_rows(vectors, "vectors")
    if not len(rows):
        raise InputError("There are no vectors to cluster.", hint="Pass at least one.")
    return rows


BLOCK_ROWS = 4096
SAMPLE_ROWS, SAMPLE_PER_CLUSTER = 10_000, 30  # size of the sample from which the first centers are drawn


@dataclass(frozen=True, slots=True)
class KMeansSettings:
    """The best of ``n_restarts`` runs from different first centers, each of at most ``max_rounds`` rounds.

    A run stops when at most a share ``tolerance`` of the rows change cluster. The same seed gives the same clusters.
    """

    n_clusters: int = 8
    n_restarts: int = 3
    max_rounds: int = 50
    tolerance: float = 0.0005
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, n_clusters=self.n_clusters, n_restarts=self.n_restarts, max_rounds=self.max_rounds)
        if not 0 <= self.tolerance < 1:
            raise InputError(f"tolerance must be at least 0 and below 1, got {self.tolerance}.")

    def describe(self) -> str:
        """Return the algorithm and its settings as one line of text."""
        return f"spherical k-means, {self.n_clusters} clusters, best of {self.n_restarts} runs, seed {self.seed}"


class KMeans:
    """Clusters around mean directions. After ``fit``, with larger clusters first:

    ``labels_`` ``(n,)``; ``centers_`` ``(n_clusters, width)``, of length 1; ``score_``, the mean cosine of rows with
    their center.
    """

    def __init__(self, settings: KMeansSettings | None = None) -> None:
        self.settings = settings or KMeansSettings()

    def fit(self, vectors: ArrayLike) -> KMeans:
        """Find the clusters of ``vectors`` ``(n, width)``."""
        rows = nonempty_rows(vectors)
        if len(rows) < self.settings.n_clusters:
            raise InputError(
                f"{len(rows)} vectors are too few for {self.settings.n_clusters} clusters.",
                hint="Choose fewer clusters.",
            )
        units = unit_rows_of(rows)
        generator = np.random.default_rng(self.settings.seed)
        runs = [_run(units, self.settings, generator) for _ in range(self.settings.n_restarts)]
        best = max(runs, key=lambda run: run.score)  # ties: the first run
        order = np.argsort(-np.bincount(best.labels, minlength=len(best.centers)), kind="stable")
        self.labels_ = np.argsort(order)[best.labels]
        self.centers_, self.score_ = best.centers[order], best.score
        return self


class _Run(NamedTuple):
    labels: Ids
    centers: Vectors
    score: float


class _Assigned(NamedTuple):
    """Each row's nearest center and its cosine, both ``(n,)``, and the sum of each cluster's rows."""

    labels: Ids
    scores: NDArray[np.float32]
    sums: NDArray[np.float64]


def _run(rows: Vectors, settings: KMeansSettings, generator: np.random.Generator) -> _Run:
    """Run k-means once on ``rows`` of length 1."""
    centers = first_centers(rows, settings.n_clusters, generator)
    found = _assigned(rows, centers)
    for _ in range(settings.max_rounds):
        centers = _new_centers(rows, found)
        before, found = found, _assigned(rows, centers)
        if np.count_nonzero(before.labels != found.labels) <= settings.tolerance * len(rows):
            break
    return _Run(found.labels, centers, float(found.scores.mean()))


def first_centers(rows: Vectors, n_clusters: int, generator: np.random.Generator) -> Vectors:
    """First centers, ``(n_clusters, width)``: rows are drawn with a probability proportional to their distance.

    The distance is to the nearest row already drawn. Many ``rows`` ``(n, width)``, of length 1, are sampled first.
    """
    n_sample = min(len(rows), max(SAMPLE_ROWS, SAMPLE_PER_CLUSTER * n_clusters))
    if n_sample < len(rows):
        rows = rows[np.sort(generator.choice(len(rows), n_sample, replace=False))]
    chosen = [int(generator.integers(len(rows)))]
    distances = np.ones(len(rows))
    while len(chosen) < n_clusters:
        distances = np.minimum(distances, np.maximum(1 - (rows @ rows[chosen[-1]]).astype(np.float64), 0))
        distances[chosen] = 0
        total = distances.sum()
        if total > 0:
            row = np.searchsorted(np.cumsum(distances), generator.random() * total, side="right")
            chosen.append(int(min(row, len(rows) - 1)))
        else:  # fewer distinct rows than clusters
            chosen.append(int(np.flatnonzero(~np.isin(np.arange(len(rows)), chosen))[0]))
    return rows[chosen]


def _assigned(rows: Vectors, centers: Vectors) -> _Assigned:
    labels, scores = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.float32)
    sums = np.zeros(centers.shape)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        block = rows[part] @ centers.T
        labels[part] = block.argmax(axis=1)
        scores[part] = np.take_along_axis(block, labels[part, None], axis=1)[:, 0]
        order = np.argsort(labels[part], kind="stable")
        present, firsts = np.unique(labels[part][order], return_index=True)
        sums[present] += np.add.reduceat(rows[part][order], firsts, axis=0, dtype=np.float64)
    return _Assigned(labels, scores, sums)


def _new_centers(rows: Vectors, found: _Assigned) -> Vectors:
    """Mean directions; an empty cluster restarts at one of the rows that are farthest from their center."""
    empty = np.flatnonzero(np.bincount(found.labels, minlength=len(found.sums)) == 0)
    sums = found.sums.copy()
    sums[empty] = rows[np.argsort(found.scores, kind="stable")[: len(empty)]]
    return unit_rows(np.asarray(sums, dtype=np.float32))
