"""A map of texts, colored by cluster: as SVG for pages, and as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from twinvec.cluster.describing import Clustering
from twinvec.extras import require
from twinvec.report.svg import Scale, element, figure, text
from twinvec.types import Ids

__all__ = ["ClusterMap", "map_png", "map_svg"]

WIDTH, HEIGHT, EDGE = 960, 620, 24
MOST_POINTS = 4000  # more make a page heavy and show no more
# Twelve colors that stand apart on light and dark ground; clusters after the twelfth share a gray.
COLORS = (
    "#3b6ea8", "#d1703c", "#4f9d69", "#b4485a", "#8263b3", "#9a7434",
    "#cf6fa5", "#5aa0b4", "#94a02f", "#5562c4", "#c2942b", "#6d8a7c",
)  # fmt: skip
OTHER, ALONE = "#8b949e", "#c3c9cf"


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

    def middle(self, label: int) -> tuple[float, float]:
        """The median place of a cluster."""
        x, y = np.median(self.places[self.labels == label], axis=0)
        return float(x), float(y)


def color_of(label: int) -> str:
    """The color of a cluster.

    >>> color_of(0), color_of(500), color_of(-1)
    ('#3b6ea8', '#8b949e', '#c3c9cf')
    """
    return ALONE if label < 0 else COLORS[label] if label < len(COLORS) else OTHER


def map_svg(found: Clustering, drawn: ClusterMap) -> str:
    """The map as a drawing, with the text of every point as its tip, and the largest clusters by number."""
    x_scale, y_scale = _scales(drawn.places)
    points = [
        element(
            "circle",
            element("title", escape(f"{drawn.texts[row][:160]} ({_name(int(drawn.labels[row]))})")),
            cx=x_scale(float(drawn.places[row, 0])),
            cy=y_scale(float(drawn.places[row, 1])),
            r=3.2,
            fill=color_of(int(drawn.labels[row])),
            fill_opacity=0.65,
        )
        for row in drawn.shown().tolist()
    ]
    names = []
    for cluster in found.clusters[: len(COLORS)]:
        x, y = drawn.middle(cluster.label)
        shown = f"{cluster.label} {' '.join(cluster.words[:2])}"
        names.append(text(shown, x_scale(x), y_scale(y), class_="mapname", anchor="middle"))
    label = f"A map of {found.n_texts:,} texts in {len(found.clusters):,} clusters"
    return figure("".join(points + names), width=WIDTH, height=HEIGHT, label=label)


def map_png(found: Clustering, drawn: ClusterMap) -> bytes:
    """The map as a picture."""
    require("matplotlib", extra="plot", feature="A map as a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(11, 7.4), dpi=130, layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots()
    rows = drawn.shown()
    colors = [color_of(label) for label in drawn.labels[rows].tolist()]
    axes.scatter(*drawn.places[rows].T, s=9, c=colors, alpha=0.65, linewidths=0)
    for cluster in found.clusters[: len(COLORS)]:
        name = f"{cluster.label}  {', '.join(cluster.words[:3])}".replace("$", r"\$")
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": color_of(cluster.label), "alpha": 0.85}
        axes.annotate(name, drawn.middle(cluster.label), ha="center", va="center", fontsize=8, bbox=box)
    axes.set_title(f"{found.n_texts:,} texts, {len(found.clusters):,} clusters: {found.method}", fontsize=10, loc="left")
    axes.set_xlabel(drawn.projection, fontsize=8, color="#5c6570")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#e4e6e8")
    written = BytesIO()
    picture.savefig(written, format="png")
    return written.getvalue()


def _scales(places: NDArray[np.float32]) -> tuple[Scale, Scale]:
    low, high = places.min(axis=0).astype(float), places.max(axis=0).astype(float)
    high = np.where(high > low, high, low + 1)
    return (
        Scale(float(low[0]), float(high[0]), EDGE, WIDTH - EDGE),
        Scale(float(low[1]), float(high[1]), HEIGHT - EDGE, EDGE),
    )


def _name(label: int) -> str:
    return f"cluster {label}" if label >= 0 else "no cluster"
