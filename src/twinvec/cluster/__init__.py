"""Clusters of vectors: k-means, agglomerative, communities; what is in them, and where they lie on a map."""

from twinvec.cluster.agglomerative import Agglomerative, AgglomerativeSettings
from twinvec.cluster.communities import Communities, CommunitySettings
from twinvec.cluster.describing import Cluster, Clustering, describe_clusters
from twinvec.cluster.kmeans import KMeans, KMeansSettings
from twinvec.cluster.mapping import map_vectors
from twinvec.cluster.words import key_words

__all__ = [
    "Agglomerative",
    "AgglomerativeSettings",
    "Cluster",
    "Clustering",
    "Communities",
    "CommunitySettings",
    "KMeans",
    "KMeansSettings",
    "describe_clusters",
    "key_words",
    "map_vectors",
]
