"""Options of ``twinvec cluster``: which algorithm, and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from twinvec.cli.method import METHOD_OPTIONS, METHODS, MethodChoice, method_choice
from twinvec.cli.options import Decorator, gathered

if TYPE_CHECKING:
    from twinvec.cluster import Agglomerative, Communities, KMeans
    from twinvec.types import Vectors

__all__ = ["ALGORITHMS", "LINKAGES", "PROJECTIONS", "ClusterChoice", "cluster_options"]

PROJECTIONS = ("auto", "pca", "umap")
LINKAGES = ("average", "complete")
# algorithm -> the settings it takes
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "kmeans": ("n_clusters", "seed"),
    "agglomerative": ("threshold", "linkage"),
    "communities": ("threshold", "min_size"),
}
OPTION_NAMES = {
    "n_clusters": "-k",
    "seed": "--seed",
    "threshold": "--threshold",
    "linkage": "--linkage",
    "min_size": "--min-size",
}


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """An algorithm, and those of its settings that were given."""

    algorithm: str
    given: dict[str, Any]
    method: MethodChoice

    def fit(self, vectors: Vectors) -> KMeans | Agglomerative | Communities:
        """Cluster ``vectors`` ``(n, width)``."""
        import twinvec.cluster as ways

        if self.algorithm == "kmeans":
            return ways.KMeans(ways.KMeansSettings(**self.given)).fit(vectors)
        if self.algorithm == "agglomerative":
            return ways.Agglomerative(ways.AgglomerativeSettings(**self.given)).fit(vectors)
        communities = ways.Communities(ways.CommunitySettings(**self.given))
        return communities.fit(vectors, index=self.method.build(vectors))


def cluster_choice(algorithm: str, method: str, max_memory: str | None, **settings: object) -> ClusterChoice:
    """The choice; refuses settings of another algorithm."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in ALGORITHMS[algorithm]:
            takers = " and ".join(each for each, names in ALGORITHMS.items() if name in names)
            raise click.UsageError(f"{OPTION_NAMES[name]} is for {takers}, not for {algorithm}.")
    if method != METHODS[0] and algorithm != "communities":
        raise click.UsageError(f"--method is for communities, not for {algorithm}.")
    if max_memory is not None and algorithm != "communities":
        raise click.UsageError(f"--max-memory is for communities, not for {algorithm}.")
    return ClusterChoice(algorithm, given, method_choice(method, max_memory))


CLUSTER_OPTIONS: dict[str, Decorator] = {
    "algorithm": click.option(
        "-a",
        "--algorithm",
        type=click.Choice(tuple(ALGORITHMS)),
        default="kmeans",
        show_default=True,
        help="kmeans: so many clusters, every text in one. agglomerative: joined while they are similar, for thousands "
        "of texts. communities: texts near a central one; the others stay alone.",
    ),
    "n_clusters": click.option(
        "-k", "n_clusters", type=click.IntRange(min=1), help="kmeans: how many clusters. Default: 8."
    ),
    "seed": click.option("--seed", type=click.IntRange(min=0), help="kmeans: the same seed, the same clusters."),
    "threshold": click.option(
        "--threshold",
        type=click.FloatRange(-1, 1),
        help="agglomerative: the mean cosine down to which clusters are joined; default: 0.6. "
        "communities: the cosine of each text to the central one; default: 0.75.",
    ),
    "linkage": click.option(
        "--linkage",
        type=click.Choice(LINKAGES),
        help="agglomerative: similar is the mean cosine (average, the default) or the lowest (complete).",
    ),
    "min_size": click.option(
        "--min-size", type=click.IntRange(min=1), help="communities: the fewest texts of one. Default: 10."
    ),
    **METHOD_OPTIONS,
}
cluster_options = gathered(CLUSTER_OPTIONS, "choice", build=cluster_choice)
