"""Draw the map of docs/cluster.md.

    python scripts/cluster_figure.py

Writes docs/lab/clusters.svg, as ``twinvec cluster`` draws it with twinvec-mini. The texts are those of
``twinvec demo``: sentences of Python's standard library.
"""

from __future__ import annotations

import re
from pathlib import Path

import twinvec
from twinvec.cluster import KMeans, KMeansSettings, describe_clusters, map_vectors
from twinvec.data.sentences import gather_sentences
from twinvec.report.clusters import ClusterMap, map_svg
from twinvec.report.html import drawing_file

TARGET = Path(__file__).parents[1] / "docs/lab/clusters.svg"
N_TEXTS, N_CLUSTERS = 3_000, 12


def main() -> None:
    """Embed, cluster and draw the texts."""
    texts = gather_sentences(N_TEXTS)
    vectors = twinvec.load().encode(texts)
    fitted = KMeans(KMeansSettings(N_CLUSTERS)).fit(vectors)
    found = describe_clusters(texts, vectors, fitted.labels_, method=fitted.settings.describe())
    drawn = ClusterMap(texts, fitted.labels_, map_vectors(vectors, "pca"), "pca")
    drawing = re.sub("<title>.*?</title>", "", map_svg(found, drawn))  # browsers show no tooltips inside an <img>
    TARGET.write_bytes(drawing_file(drawing))


if __name__ == "__main__":
    main()
