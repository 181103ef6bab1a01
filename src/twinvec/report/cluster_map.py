"""A map of texts, colored by cluster: as SVG for pages, and as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from twinvec.cluster.describing import Cluster, Clustering
from twinvec.report.map_names import Frame, spread_names
from twinvec.report.plots import INK, SOFT, new_figure, png_of
from twinvec.report.svg import element, figure, text
from twinvec.types import Ids

__all__ = ["ClusterMap", "color_of", "map_png", "map_svg"]

WIDTH, HEIGHT, EDGE = 960, 620, 24
MOST_POINTS = 4000  # more make a page heavy and show no more
TIP_LENGTH = 160
# Twelve colors that stand apart on light and dark ground; clusters after the twelfth share a gray.
COLORS = (
    "#3b6ea8", "#d1703c", "#4f9d69", "#b4485a", "#8263b3", "#9a7434",
    "#cf6fa5", "#5aa0b4", "#94a02f", "#5562c4", "#c2942b", "#6d8a7c",
)  # fmt: skip
OTHER, ALONE = "#8b949e", "#c3c9cf"
PROJECTIONS = {"pca": "the first two principal components", "umap": "UMAP"}


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """Texts with their labels ``(n,)``, -1 for none, and their places ``(n, 2)``, and what projection gave these."""

    texts: Sequence[str]
    labels: Ids
    places: NDArray[np.float32]
    projection: str

    def shown(self) -> Ids:
        """Rows that are drawn: all, or some from all over; those of no cluster first, so that others lie above."""
        rows = np.arange(len(self.labels))
        if len(rows) > MOST_POINTS:
            rows = np.linspace(0, len(rows) - 1, MOST_POINTS).astype(np.int64)
        return rows[np.argsort(self.labels[rows] >= 0, kind="stable")]

    def words(self) -> str:
        """How the map was made, and how much of it is drawn."""
        drawn = min(len(self.labels), MOST_POINTS)
        part = f"; {drawn:,} of {len(self.labels):,} texts are drawn" if drawn < len(self.labels) else ""
        return f"places by {PROJECTIONS[self.projection]}{part}"


def color_of(label: int) -> str:
    """The color of a cluster.

    >>> color_of(0), color_of(500), color_of(-1)
    ('#3b6ea8', '#8b949e', '#c3c9cf')
    """
    return ALONE if label < 0 else COLORS[label] if label < len(COLORS) else OTHER


def map_svg(found: Clustering, drawn: ClusterMap) -> str:
    """The map as a drawing, with the text of every point as its tip, and names for the largest clusters."""
    places = _scaled(drawn.places)
    points = [
        element(
            "circle",
            element("title", escape(f"{drawn.texts[row][:TIP_LENGTH]} ({_name(int(drawn.labels[row]))})")),
            cx=float(places[row, 0]),
            cy=float(places[row, 1]),
            r=3.2,
            fill=color_of(int(drawn.labels[row])),
            fill_opacity=0.65,
        )
        for row in drawn.shown().tolist()
    ]
    names = [
        text(name, x, y + 5, class_="mapname", anchor="middle")  # y is the foot of the letters
        for name, (x, y), _ in _names(found, drawn, places)
    ]
    label = f"A map of {found.n_texts:,} texts in {len(found.clusters):,} clusters"
    return figure("".join(points + names), width=WIDTH, height=HEIGHT, label=label)


def map_png(found: Clustering, drawn: ClusterMap) -> bytes:
    """The map as a picture. Needs matplotlib."""
    picture = new_figure(11, 7.6)
    axes = picture.subplots()
    places, rows = _scaled(drawn.places), drawn.shown()
    colors = [color_of(label) for label in drawn.labels[rows].tolist()]
    axes.scatter(*places[rows].T, s=12, c=colors, alpha=0.65, linewidths=0)
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), xticks=[], yticks=[])
    for name, place, color in _names(found, drawn, places):
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": color, "alpha": 0.85}
        shown = name.replace("$", r"\$")  # which would begin a formula
        axes.annotate(shown, place, ha="center", va="center", fontsize=8, color=INK, bbox=box)
    axes.set_title(f"{found.n_texts:,} texts, {len(found.clusters):,} clusters", fontsize=11, loc="left", color=INK)
    axes.set_xlabel(f"{found.method}; {drawn.words()}", fontsize=8, color=SOFT)
    axes.spines[:].set_color("#e4e6e8")
    return png_of(picture)


def _scaled(places: NDArray[np.float32]) -> NDArray[np.float64]:
    """Places ``(n, 2)`` within the drawing; y goes down."""
    low, high = places.min(axis=0).astype(np.float64), places.max(axis=0).astype(np.float64)
    share = (places - low) / np.where(high > low, high - low, 1)
    share[:, 1] = 1 - share[:, 1]
    return np.asarray(EDGE + share * (np.array([WIDTH, HEIGHT]) - 2 * EDGE))


def _names(
    found: Clustering, drawn: ClusterMap, places: NDArray[np.float64]
) -> Iterator[tuple[str, tuple[float, float], str]]:
    """The names of the largest clusters, where they stand, and their colors."""
    named = found.clusters[: len(COLORS)]
    titles = [_title(cluster) for cluster in named]
    middles = [np.median(places[drawn.labels == cluster.label], axis=0) for cluster in named]
    spread = spread_names(titles, [(float(x), float(y)) for x, y in middles], Frame(WIDTH, HEIGHT))
    yield from zip(titles, spread, (color_of(cluster.label) for cluster in named), strict=True)


def _title(cluster: Cluster) -> str:
    return f"{cluster.label}  {', '.join(cluster.words[:2])}".rstrip()


def _name(label: int) -> str:
    return f"cluster {label}" if label >= 0 else "no cluster"
