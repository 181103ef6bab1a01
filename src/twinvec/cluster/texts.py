"""Cluster texts: embed and group them, describe each group, and draw a map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import DEFAULT_MODEL, PairMethod, Projection
from twinvec.cluster.agglomerative import Agglomerative, AgglomerativeSettings
from twinvec.cluster.communities import Communities, CommunitySettings
from twinvec.cluster.describe import Clustering, choose_projection, describe_clusters, map_vectors
from twinvec.cluster.kmeans import KMeans, KMeansSettings
from twinvec.embedder import Embedder, ModelLike, as_embedder, embed_texts
from twinvec.errors import InputError
from twinvec.search.texts import Tell, listed_texts, pair_index
from twinvec.types import Ids

__all__ = ["ClusterSettings", "TextClusters", "TextMap", "cluster_texts"]

ClusterSettings: TypeAlias = KMeansSettings | AgglomerativeSettings | CommunitySettings


class TextMap(NamedTuple):
    """The coordinates of each text on a map, ``(n, 2)``, and the projection used: pca or umap."""

    places: NDArray[np.float32]
    projection: str


@dataclass(frozen=True, eq=False)
class TextClusters:
    """Clusters of texts: ``labels`` ``(n,)``, -1 for none; ``clusters``, their descriptions; ``map``, if requested."""

    labels: Ids
    clusters: Clustering
    map: TextMap | None = None


def cluster_texts(
    texts: Iterable[str],
    settings: ClusterSettings | None = None,
    *,
    model: ModelLike | Embedder = DEFAULT_MODEL,
    n_texts: int = 3,
    n_words: int = 5,
    projection: Projection | None = None,
    method: PairMethod = "auto",
    max_memory: int | None = None,
    tell: Tell | None = None,
) -> TextClusters:
    """Group texts by meaning. Clusters are numbered from 0, largest first.

    Args:
        settings: The settings of the algorithm; their type selects it: ``KMeansSettings`` (the default),
            ``AgglomerativeSettings`` or ``CommunitySettings`` of :mod:`twinvec.cluster`.
        n_texts: Number of central texts to return per cluster.
        n_words: Number of key words to return per cluster.
        projection: Also compute a map: pca, umap, or auto (umap if it is installed).
        method: For communities: how pairs are found. ``method``, ``max_memory`` and ``tell`` are those of
            :func:`twinvec.find_pairs`.

    >>> from twinvec.cluster import KMeansSettings
    >>> texts = ["A cat sits.", "Rain falls.", "The cat is sitting.", "It is raining."]
    >>> found = cluster_texts(texts, KMeansSettings(n_clusters=2))
    >>> labels = found.labels.tolist()
    >>> labels[0] == labels[2], labels[1] == labels[3], found.clusters.clusters[0].size
    (True, True, 2)
    """
    chosen, listed = settings or KMeansSettings(), listed_texts(texts)
    if not isinstance(chosen, CommunitySettings) and (method != "auto" or max_memory is not None):
        raise InputError(
            "method and max_memory apply only to communities.", hint="Remove them, or use CommunitySettings."
        )
    resolved = None if projection is None else choose_projection(projection, len(listed))  # fails before any work
    vectors = embed_texts(as_embedder(model), listed)
    if isinstance(chosen, CommunitySettings):
        index = pair_index(vectors, method, max_memory=max_memory, tell=tell)
        labels = Communities(chosen).fit(vectors, index=index).labels_
    elif isinstance(chosen, KMeansSettings):
        labels = KMeans(chosen).fit(vectors).labels_
    else:
        labels = Agglomerative(chosen).fit(vectors).labels_
    found = describe_clusters(listed, vectors, labels, method=chosen.describe(), n_texts=n_texts, n_words=n_words)
    return TextClusters(labels, found, None if resolved is None else TextMap(map_vectors(vectors, resolved), resolved))
