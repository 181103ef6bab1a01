"""Clusters for people: a folder with a page and its map, the same as Markdown, and all of it as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from twinvec.cluster.describing import Cluster, Clustering
from twinvec.report.cluster_map import ClusterMap, color_of, map_png, map_svg
from twinvec.report.document import document
from twinvec.report.folder import write_folder
from twinvec.report.markdown_table import cell, table
from twinvec.report.svg import element

__all__ = ["CLUSTER_DATA", "clusters_html", "clusters_markdown", "summary", "write_cluster_report"]

CLUSTER_DATA = "clusters.json"
MAP, MARKDOWN = "map.png", "report.md"
MOST_SHOWN = 200  # clusters in the tables; the JSON has all
CLOSENESS = "Closeness is the mean cosine of a cluster's texts with their mean direction."
HEADS = ("cluster", "texts", "closeness", "key words", "texts nearest to the middle")
NUMBERS = (0, 1, 2)  # places of the columns that hold numbers


def write_cluster_report(found: Clustering, drawn: ClusterMap, target: Path, *, replace: bool = False) -> None:
    """Write ``report.html``, ``report.md``, ``map.png`` and ``clusters.json`` into a folder, all or none."""
    files = {MAP: map_png(found, drawn), MARKDOWN: clusters_markdown(found, drawn).encode()}
    data = (CLUSTER_DATA, found.as_dict())
    write_folder(target, page=clusters_html(found, drawn), files=files, data=data, replace=replace)


def clusters_markdown(found: Clustering, drawn: ClusterMap) -> str:
    """The whole report; its map is a file beside it."""
    method = cell(_sentence(found.method))
    lines = ["# Clusters", "", f"{summary(found)} {method}", "", f"![{_sentence(drawn.words())}]({MAP})", ""]
    rows = [
        (*_numbers(cluster), cell(", ".join(cluster.words)), "<br>".join(_plain(text) for text in cluster.texts))
        for cluster in found.clusters[:MOST_SHOWN]
    ]
    return "\n".join([*lines, *table(HEADS, rows, right=NUMBERS), "", _note(found)]) + "\n"


def clusters_html(found: Clustering, drawn: ClusterMap) -> str:
    """The whole page."""
    return document("Clusters", _parts(found, drawn))


def _parts(found: Clustering, drawn: ClusterMap) -> Iterator[str]:
    yield element("p", "Clusters", class_="eyebrow")
    yield element("h1", f"{found.n_texts:,} texts in {len(found.clusters):,} clusters")
    alone = f" {found.n_alone:,} of the texts belong to none." if found.n_alone else ""
    yield element("p", escape(f"{_sentence(found.method)}{alone}"), class_="lead")
    yield element("h2", "Map")
    note = f"{_sentence(drawn.words())} Near texts are similar. Point at a dot to read its text."
    yield element("p", escape(note), class_="note")
    yield element("figure", map_svg(found, drawn), class_="card chart")
    yield element("h2", "What is in them")
    yield element("p", escape(_note(found)), class_="note")
    head = element("tr", *(element("th", name, class_=_kind(place)) for place, name in enumerate(HEADS)))
    body = "".join(_row(cluster) for cluster in found.clusters[:MOST_SHOWN])
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
    """How many texts, how many clusters, in a sentence."""
    n_within, n_clusters = found.n_texts - found.n_alone, len(found.clusters)
    alone = f"; {found.n_alone:,} in none" if found.n_alone else ""
    shown = f"{n_clusters:,} cluster{'s' * (n_clusters != 1)}"
    return f"{n_within:,} of {found.n_texts:,} texts are in {shown}{alone}."


def _note(found: Clustering) -> str:
    n_more = len(found.clusters) - MOST_SHOWN
    return f"{CLOSENESS} {n_more:,} smaller clusters are in {CLUSTER_DATA}." if n_more > 0 else CLOSENESS


def _numbers(cluster: Cluster) -> tuple[str, str, str]:
    return str(cluster.label), f"{cluster.size:,}", f"{cluster.closeness:.3f}"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, where it could be taken for HTML."""
    return cell(text).replace("&", "&amp;").replace("<", "&lt;")


def _kind(place: int) -> str:
    return "number" if place in NUMBERS else ""


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
