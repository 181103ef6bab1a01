"""Cluster texts: embed, group, describe each group, and place all on a map."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from twinvec.search.texts import listed_texts, pair_index
from twinvec.types import Ids, Vectors

__all__ = ["ClusterSettings", "TextClusters", "TextMap", "cluster_texts"]

Tell = Callable[[str], None]
ClusterSettings: TypeAlias = KMeansSettings | AgglomerativeSettings | CommunitySettings


class TextMap(NamedTuple):
    """Where each text lies on a map, ``(n, 2)``, and what projection gave that: pca or umap."""

    places: NDArray[np.float32]
    projection: str


@dataclass(frozen=True, eq=False)
class TextClusters:
    """Clusters of texts: the ``labels`` ``(n,)`` of all, -1 for none, and ``clusters`` that describe each label.

    ``map`` is there if it was asked for.
    """

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
    """Group texts by what they say. Clusters are numbered from 0, larger ones first.

    Args:
        settings: of the algorithm, and by their type which: ``KMeansSettings`` (the default),
            ``AgglomerativeSettings`` or ``CommunitySettings`` of :mod:`twinvec.cluster`.
        n_texts: for each cluster, how many texts nearest to its middle to give.
        n_words: for each cluster, how many key words.
        projection: also give each text a place on a map: pca, umap, or auto (umap where it is installed).
        method: for communities, how pairs are found, as in :func:`twinvec.find_pairs`; so ``max_memory`` and ``tell``.

    >>> from twinvec.cluster import KMeansSettings
    >>> texts = ["A cat sits.", "Rain falls.", "The cat is sitting.", "It is raining."]
    >>> found = cluster_texts(texts, KMeansSettings(n_clusters=2))
    >>> labels = found.labels.tolist()
    >>> labels[0] == labels[2], labels[1] == labels[3], found.clusters.clusters[0].size
    (True, True, 2)
    """
    chosen, listed = settings or KMeansSettings(), listed_texts(texts)
    if not isinstance(chosen, CommunitySettings) and (method != "auto" or max_memory is not None):
        raise InputError("method and max_memory are for communities.", hint="Leave them out, or use CommunitySettings.")
    drawn_by = None if projection is None else choose_projection(projection, len(listed))  # before any work
    vectors = embed_texts(as_embedder(model), listed)
    if isinstance(chosen, CommunitySettings):
        index = pair_index(vectors, method, max_memory=max_memory, tell=tell)
        labels = Communities(chosen).fit(vectors, index=index).labels_
    else:
        labels = _labels(chosen, vectors)
    found = describe_clusters(listed, vectors, labels, method=chosen.describe(), n_texts=n_texts, n_words=n_words)
    drawn = None if drawn_by is None else TextMap(map_vectors(vectors, drawn_by), drawn_by)
    return TextClusters(labels, found, drawn)


def _labels(settings: KMeansSettings | AgglomerativeSettings, vectors: Vectors) -> Ids:
    if isinstance(settings, KMeansSettings):
        return KMeans(settings).fit(vectors).labels_
    return Agglomerative(settings).fit(vectors).labels_
