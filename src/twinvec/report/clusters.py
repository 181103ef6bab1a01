"""Clusters for people: Markdown, and one HTML page with a map."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from twinvec.cluster.describing import Cluster, Clustering
from twinvec.report.cluster_map import ClusterMap, color_of, map_svg
from twinvec.report.document import document
from twinvec.report.markdown_table import cell, table
from twinvec.report.svg import element

__all__ = ["clusters_html", "clusters_markdown"]

CLOSENESS = "Closeness is the mean cosine of a cluster's texts with their mean direction."


def clusters_markdown(found: Clustering) -> str:
    """The whole report, without a map."""
    lines = ["# Clusters", "", f"{_summary(found)} {cell(found.method[:1].upper() + found.method[1:])}.", ""]
    rows = [
        (
            str(cluster.label),
            f"{cluster.size:,}",
            f"{cluster.closeness:.3f}",
            cell(", ".join(cluster.words)),
            "<br>".join(cell(text) for text in cluster.texts),
        )
        for cluster in found.clusters
    ]
    head = ("cluster", "texts", "closeness", "key words", "texts nearest to the middle")
    return "\n".join([*lines, *table(head, rows, right=(0, 1, 2)), "", CLOSENESS]) + "\n"


def clusters_html(found: Clustering, drawn: ClusterMap) -> str:
    """The whole page."""
    return document("Clusters", _parts(found, drawn))


def _parts(found: Clustering, drawn: ClusterMap) -> Iterator[str]:
    yield element("p", "Clusters", class_="eyebrow")
    yield element("h1", f"{found.n_texts:,} texts in {len(found.clusters):,} clusters")
    yield element("p", escape(f"{_summary(found)} {found.method[:1].upper()}{found.method[1:]}."), class_="lead")
    yield element("h2", "Map")
    note = f"Places by {drawn.projection}; near texts are similar. Point at a dot to read its text."
    yield element("p", escape(note), class_="note")
    yield element("figure", map_svg(found, drawn), class_="card chart")
    yield element("h2", "What is in them")
    yield element("p", CLOSENESS, class_="note")
    head = "".join(
        element("th", name, class_="number" if name in ("texts", "closeness") else "")
        for name in ("cluster", "texts", "closeness", "key words", "texts nearest to the middle")
    )
    body = "".join(_row(cluster) for cluster in found.clusters)
    yield element("div", element("table", element("tr", head), body), class_="wide")


def _row(cluster: Cluster) -> str:
    dot = element("span", "", class_="swatch", style=f"background: {color_of(cluster.label)}")
    return element(
        "tr",
        element("td", f"{dot}{cluster.label}"),
        element("td", f"{cluster.size:,}", class_="number"),
        element("td", f"{cluster.closeness:.3f}", class_="number"),
        element("td", escape(", ".join(cluster.words))),
        element("td", "<br>".join(escape(text) for text in cluster.texts)),
    )


def _summary(found: Clustering) -> str:
    n_within = found.n_texts - found.n_alone
    alone = f"; {found.n_alone:,} belong to none" if found.n_alone else ""
    return f"{n_within:,} of {found.n_texts:,} texts are in {len(found.clusters):,} clusters{alone}."
