"""Cluster vectors with k-means, agglomerative clustering or communities; describe and map the clusters."""

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
