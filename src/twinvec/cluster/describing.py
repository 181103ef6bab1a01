"""What is in clusters: how many, how close together, the texts nearest to the middle, and the words that tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twinvec.cluster.words import key_words
from twinvec.errors import InputError
from twinvec.search.rows import numeric_rows, unit_rows_of
from twinvec.types import Ids, Vectors
from twinvec.vectors import unit_rows

__all__ = ["Cluster", "Clustering", "describe_clusters"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster. ``closeness`` is the mean cosine of its texts with their mean direction.

    ``rows`` and ``texts`` are those nearest to that direction.
    """

    label: int
    size: int
    closeness: float
    words: tuple[str, ...]
    rows: tuple[int, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clustering:
    """All clusters of some texts, by label, and how many of the texts belong to none."""

    method: str
    n_texts: int
    n_alone: int
    clusters: tuple[Cluster, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self)


def describe_clusters(
    texts: Sequence[str], vectors: ArrayLike, labels: ArrayLike, *, method: str, n_texts: int = 3, n_words: int = 5
) -> Clustering:
    """The clusters of texts with their ``vectors`` ``(n, width)`` and ``labels`` ``(n,)``: 0, 1, ...; -1 is none.

    Each with its ``n_texts`` texts nearest to the middle, different ones if there are so many, and ``n_words`` words.
    """
    rows, marks = numeric_rows(vectors, "vectors"), np.asarray(labels, dtype=np.int64)
    if not len(texts) == len(rows) == len(marks):
        raise InputError(f"{len(texts)} texts, {len(rows)} vectors and {len(marks)} labels do not belong together.")
    units = unit_rows_of(rows)
    n_clusters = int(marks.max(initial=-1)) + 1
    words = key_words(texts, marks.tolist(), n_clusters, n=n_words)
    order = np.argsort(marks, kind="stable")
    ends = np.searchsorted(marks[order], np.arange(n_clusters + 1))
    clusters = tuple(
        _described(label, order[ends[label] : ends[label + 1]], texts, units, words=words[label], n_texts=n_texts)
        for label in range(n_clusters)
    )
    return Clustering(method, len(texts), int(np.count_nonzero(marks < 0)), clusters)


def _described(
    label: int, members: Ids, texts: Sequence[str], units: Vectors, *, words: Sequence[str], n_texts: int
) -> Cluster:
    own = units[members]
    cosines = own @ unit_rows(own.sum(axis=0, dtype=np.float64).astype(np.float32))
    nearest: dict[str, int] = {}
    for place in np.argsort(-cosines, kind="stable").tolist():
        nearest.setdefault(texts[members[place]], int(members[place]))
        if len(nearest) == n_texts:
            break
    closeness = round(float(cosines.mean()), 6) if len(members) else 0.0
    return Cluster(label, len(members), closeness, tuple(words), tuple(nearest.values()), tuple(nearest))
