"""Reports of clusters: an HTML page with a map, Markdown, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinvec.cluster.describe import Cluster, Clustering
from twinvec.progress import columns_of, shortened
from twinvec.report.html import document, drawing_file, element, figure, text, write_folder
from twinvec.report.markdown import cell, table
from twinvec.types import Ids

__all__ = ["CLUSTER_DATA", "ClusterMap", "map_svg", "summary", "write_cluster_report"]

LETTER, LINE, PADDING = 7.6, 26.0, 16.0  # width of a letter, height of a line, margin of a name; in frame units
MAX_LINES = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a drawing."""

    width: float
    height: float


def spread_names(
    names: Sequence[str], wanted: Sequence[tuple[float, float]], frame: Frame
) -> list[tuple[float, float]]:
    """Place the center of each name at its wanted point, or the nearest free line above or below; first come first.

    >>> spread_names(["cats", "dogs"], [(100.0, 100.0), (105.0, 102.0)], Frame(200, 200))
    [(100.0, 100.0), (105.0, 128.0)]
    """
    placed: list[tuple[float, float]] = []
    widths = [LETTER * columns_of(name) + PADDING for name in names]
    for (x, y), width in zip(wanted, widths, strict=True):
        x = _within(x, width / 2, frame.width)
        free = (
            (x, line)
            for line in _lines(y, frame.height)
            if not any(_overlap((x, line), width, other, widths[rank]) for rank, other in enumerate(placed))
        )
        placed.append(next(free, (x, _within(y, LINE / 2, frame.height))))
    return placed


def _lines(y: float, height: float) -> Iterator[float]:
    """Heights to try within the frame, nearest first."""
    for away in range(MAX_LINES):
        for line in dict.fromkeys((y + away * LINE, y - away * LINE)):
            if LINE / 2 <= line <= height - LINE / 2:
                yield line


def _overlap(one: tuple[float, float], width: float, other: tuple[float, float], other_width: float) -> bool:
    return abs(one[1] - other[1]) < LINE and abs(one[0] - other[0]) < (width + other_width) / 2


def _within(position: float, margin: float, size: float) -> float:
    return min(max(position, margin), max(size - margin, margin))


WIDTH, HEIGHT, EDGE = 960, 620, 24
MAX_POINTS = 4000  # more points slow the page down and show nothing new
TIP_LENGTH = 160
# Twelve colors that are distinct on light and dark backgrounds; clusters after the twelfth share a gray.
COLORS = (
    "#3b6ea8", "#d1703c", "#4f9d69", "#b4485a", "#8263b3", "#9a7434",
    "#cf6fa5", "#5aa0b4", "#94a02f", "#5562c4", "#c2942b", "#6d8a7c",
)  # fmt: skip
OTHER, ALONE = "#8b949e", "#c3c9cf"
PROJECTIONS = {"pca": "the first two principal components", "umap": "UMAP"}


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """Texts with their labels ``(n,)``, -1 for no cluster, their points ``(n, 2)``, and the projection's name."""

    texts: Sequence[str]
    labels: Ids
    points: NDArray[np.float32]
    projection: str

    def shown(self) -> Ids:
        """The rows to draw: all, or an even sample; texts in no cluster first, so that others are on top."""
        rows = np.arange(len(self.labels))
        if len(rows) > MAX_POINTS:
            rows = np.linspace(0, len(rows) - 1, MAX_POINTS).astype(np.int64)
        return rows[np.argsort(self.labels[rows] >= 0, kind="stable")]

    def describe(self) -> str:
        """The projection of the map, and the number of texts drawn if not all are."""
        drawn = min(len(self.labels), MAX_POINTS)
        part = f"; {drawn:,} of {len(self.labels):,} texts are drawn" if drawn < len(self.labels) else ""
        return f"points by {PROJECTIONS[self.projection]}{part}"


def color_of(label: int) -> str:
    """The color of a cluster.

    >>> color_of(0), color_of(500), color_of(-1)
    ('#3b6ea8', '#8b949e', '#c3c9cf')
    """
    return ALONE if label < 0 else COLORS[label] if label < len(COLORS) else OTHER


def map_svg(found: Clustering, drawn: ClusterMap) -> str:
    """The map as SVG, with texts as tooltips and names for the largest clusters."""
    points = _scaled(drawn.points)
    dots = [
        element(
            "circle",
            element("title", escape(f"{shortened(drawn.texts[row], TIP_LENGTH)} ({_name(int(drawn.labels[row]))})")),
            cx=float(points[row, 0]),
            cy=float(points[row, 1]),
            r=3.2,
            fill=color_of(int(drawn.labels[row])),
            fill_opacity=0.65,
        )
        for row in drawn.shown().tolist()
    ]
    names = [
        text(name, x, y + 5, class_="mapname", anchor="middle")  # y is the baseline
        for name, (x, y) in _names(found, drawn, points)
    ]
    label = f"A map of {found.n_texts:,} texts in {len(found.clusters):,} clusters"
    return figure("".join(dots + names), width=WIDTH, height=HEIGHT, label=label)


def _scaled(points: NDArray[np.float32]) -> NDArray[np.float64]:
    """Points ``(n, 2)`` scaled to the drawing, where y points down."""
    low, high = points.min(axis=0).astype(np.float64), points.max(axis=0).astype(np.float64)
    share = (points - low) / np.where(high > low, high - low, 1)
    share[:, 1] = 1 - share[:, 1]
    return np.asarray(EDGE + share * (np.array([WIDTH, HEIGHT]) - 2 * EDGE))


def _names(
    found: Clustering, drawn: ClusterMap, points: NDArray[np.float64]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the names of the largest clusters and their positions."""
    named = found.clusters[: len(COLORS)]
    titles = [_title(cluster) for cluster in named]
    middles = [np.median(points[drawn.labels == cluster.label], axis=0) for cluster in named]
    spread = spread_names(titles, [(float(x), float(y)) for x, y in middles], Frame(WIDTH, HEIGHT))
    yield from zip(titles, spread, strict=True)


def _title(cluster: Cluster) -> str:
    return f"{cluster.label}  {', '.join(cluster.words[:2])}".rstrip()


def _name(label: int) -> str:
    return f"cluster {label}" if label >= 0 else "no cluster"


CLUSTER_DATA = "clusters.json"
MAP, MARKDOWN = "map.svg", "report.md"
MAX_SHOWN = 200  # clusters in the tables; the JSON has all
CLOSENESS = "Closeness is the mean cosine of a cluster's texts with their mean direction."
HEADS = ("cluster", "texts", "closeness", "key words", "most central texts")
NUMBERS = (0, 1, 2)  # indices of the columns that hold numbers


def write_cluster_report(found: Clustering, drawn: ClusterMap, target: Path, *, replace: bool = False) -> None:
    """Write ``report.html``, ``report.md``, ``map.svg`` and ``clusters.json`` into a folder, all or none."""
    files = {MAP: drawing_file(map_svg(found, drawn)), MARKDOWN: clusters_markdown(found, drawn).encode()}
    data = (CLUSTER_DATA, found.as_dict())
    write_folder(target, page=clusters_html(found, drawn), files=files, data=data, replace=replace)


def clusters_markdown(found: Clustering, drawn: ClusterMap) -> str:
    """The Markdown report; the map is a separate file."""
    method = cell(_sentence(found.method))
    lines = ["# Clusters", "", f"{summary(found)} {method}", "", f"![{_sentence(drawn.describe())}]({MAP})", ""]
    rows = [
        (*_numbers(cluster), cell(", ".join(cluster.words)), "<br>".join(_plain(text) for text in cluster.texts))
        for cluster in found.clusters[:MAX_SHOWN]
    ]
    return "\n".join([*lines, *table(HEADS, rows, right=NUMBERS), "", _note(found)]) + "\n"


def clusters_html(found: Clustering, drawn: ClusterMap) -> str:
    """The HTML page of a clustering."""
    return document("Clusters", _parts(found, drawn))


def _parts(found: Clustering, drawn: ClusterMap) -> Iterator[str]:
    yield element("p", "Clusters", class_="eyebrow")
    yield element("h1", f"{found.n_texts:,} texts in {len(found.clusters):,} clusters")
    alone = f" {found.n_alone:,} texts are in no cluster." if found.n_alone else ""
    yield element("p", escape(f"{_sentence(found.method)}{alone}"), class_="lead")
    yield element("h2", "Map")
    note = f"{_sentence(drawn.describe())} Texts near each other are similar. Hover over a dot to read its text."
    yield element("p", escape(note), class_="note")
    yield element("figure", map_svg(found, drawn), class_="card chart")
    yield element("h2", "Contents")
    yield element("p", escape(_note(found)), class_="note")
    kinds = ["number" if column in NUMBERS else "" for column in range(len(HEADS))]
    head = element("tr", *(element("th", name, class_=kind) for name, kind in zip(HEADS, kinds, strict=True)))
    body = "".join(_row(cluster) for cluster in found.clusters[:MAX_SHOWN])
    yield element("div", element("table", head, body), class_="wide")


def _row(cluster: Cluster) -> str:
    label, size, closeness = _numbers(cluster)
    dot = element("span", "", class_="swatch", style=f"background: {color_of(cluster.label)}")
    return element(
        "tr",
        element("td", f"{dot}{label}", class_="number"),
        element("td", size, class_="number"),
        element("td", closeness, class_="number"),
        element("td", escape(", ".join(cluster.words))),
        element("td", "<br>".join(escape(text) for text in cluster.texts)),
    )


def summary(found: Clustering) -> str:
    """The number of texts and clusters in a sentence."""
    n_within, n_clusters = found.n_texts - found.n_alone, len(found.clusters)
    alone = f"; {found.n_alone:,} in none" if found.n_alone else ""
    clusters = f"{n_clusters:,} cluster{'s' * (n_clusters != 1)}"
    return f"{n_within:,} of {found.n_texts:,} texts are in {clusters}{alone}."


def _note(found: Clustering) -> str:
    n_more = len(found.clusters) - MAX_SHOWN
    return f"{CLOSENESS} {n_more:,} smaller clusters are in {CLUSTER_DATA}." if n_more > 0 else CLOSENESS


def _numbers(cluster: Cluster) -> tuple[str, str, str]:
    return str(cluster.label), f"{cluster.size:,}", f"{cluster.closeness:.3f}"


def _plain(text: str) -> str:
    """Escape text for a Markdown table, HTML included."""
    return cell(text).replace("&", "&amp;").replace("<", "&lt;")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
