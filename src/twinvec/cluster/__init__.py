"""Clusters of vectors: k-means, agglomerative, communities; what is in them, and where they lie on a map."""

from twinvec.cluster.agglomerative import Agglomerative, AgglomerativeSettings
from twinvec.cluster.communities import Communities, CommunitySettings
from twinvec.cluster.describe import Cluster, Clustering, describe_clusters, key_words, map_vectors
from twinvec.cluster.kmeans import KMeans, KMeansSettings

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
