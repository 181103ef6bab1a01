"""Clusters of vectors: k-means, agglomerative, communities; what is in them, and where they lie on a map."""

from twinvec.cluster.agglomerative import Agglomerative, AgglomerativeSettings
from twinvec.cluster.communities import Communities, CommunitySettings
from twinvec.cluster.describe import Cluster, Clustering, describe_clusters, key_words, map_vectors
from twinvec.cluster.kmeans import KMeans, KMeansSettings
from twinvec.cluster.texts import ClusterSettings, TextClusters, TextMap

__all__ = [
    "Agglomerative",
    "AgglomerativeSettings",
    "Cluster",
    "ClusterSettings",
    "Clustering",
    "Communities",
    "CommunitySettings",
    "KMeans",
    "KMeansSettings",
    "TextClusters",
    "TextMap",
    "describe_clusters",
    "key_words",
    "map_vectors",
]
