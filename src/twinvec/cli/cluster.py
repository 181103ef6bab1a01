"""``twinvec cluster``: group similar texts and describe each group."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from twinvec.cli.options import (
    METHOD_OPTIONS,
    METHODS,
    Decorator,
    MethodChoice,
    ModelChoice,
    PromptChoice,
    TextSource,
    WholeRows,
    csv_safe_option,
    gathered,
    method_choice,
    model_options,
    prompt_options,
    read_whole_rows,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from twinvec.cluster import Agglomerative, Clustering, Communities, KMeans
    from twinvec.types import Ids, Vectors

__all__ = [
    "ALGORITHMS",
    "LINKAGES",
    "PROJECTIONS",
    "ClusterChoice",
    "cluster",
    "cluster_options",
]

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


STDOUT = "-"
LABEL = "cluster"
N_SHOWN = 20
COUNT = click.IntRange(min=1)


@click.command()
@text_options
@model_options()
@prompt_options
@cluster_options
@click.option("--texts", "n_texts", type=COUNT, default=3, show_default=True, help="Texts to show of each cluster.")
@click.option("--words", "n_words", type=COUNT, default=5, show_default=True, help="Key words to show of each.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"Write all rows and their {LABEL} here: .csv, .tsv, .jsonl or .parquet; '-' is standard output.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a page (report.html, report.md), its map and all numbers (clusters.json) here.",
)
@click.option(
    "--projection",
    type=click.Choice(PROJECTIONS),
    default="auto",
    show_default=True,
    help="What places texts on the map; auto: umap where it is installed (extra: map).",
)
@csv_safe_option
@click.option("--force", is_flag=True, help="Replace what exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines also on a terminal.")
def cluster(
    *,
    source: TextSource,
    model: ModelChoice,
    prompt: PromptChoice,
    choice: ClusterChoice,
    n_texts: int,
    n_words: int,
    output: str | None,
    report: Path | None,
    projection: Literal["auto", "pca", "umap"],
    csv_safe: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Group the texts of FILE (default: '-', standard input) by what they say.

    FILE is read as by embed. Clusters are numbered from 0, larger ones first; texts that belong to none are -1. Each
    is shown with the words that tell it from the others, and the texts nearest to its middle. A terminal gets a
    table; a file or a pipe gets JSON lines, one for each cluster, with the rows of its texts, counted from 0.
    """
    from twinvec.cluster import describe_clusters, map_vectors
    from twinvec.cluster.describe import choose_projection
    from twinvec.data.write import write_rows
    from twinvec.report.clusters import CLUSTER_DATA, ClusterMap, summary, write_cluster_report
    from twinvec.report.html import PAGE, check_folder

    if report is not None:
        check_folder(report, data=CLUSTER_DATA, replace=force)
    rows = read_whole_rows(source)
    if output is not None:
        check_labels(rows, output, replace=force)
    chosen = choose_projection(projection, len(rows.texts)) if report is not None else "pca"
    vectors = model.load().encode(rows.texts, prompt=prompt.prompt, prompt_name=prompt.prompt_name)
    fitted = choice.fit(vectors)
    labels, method = fitted.labels_, fitted.settings.describe()
    found = describe_clusters(rows.texts, vectors, labels, method=method, n_texts=n_texts, n_words=n_words)
    if report is not None:
        drawn = ClusterMap(rows.texts, labels, map_vectors(vectors, chosen), chosen)
        write_cluster_report(found, drawn, report, replace=force)
    if output is not None:
        write_rows(
            labelled(rows, labels),
            (*rows.columns, LABEL),
            output,
            format=to_stdout(rows, output),
            replace=force,
            csv_safe=csv_safe,
        )
    if output != STDOUT:
        print_clusters(found, as_json=as_json)
    say(f"{summary(found)} {method[:1].upper()}{method[1:]}.")
    if not found.clusters:
        say("Lower --threshold or --min-size for more.")
    if report is not None:
        say(f"Wrote {report / PAGE}, with its map and {CLUSTER_DATA} beside it.")


def check_labels(rows: WholeRows, output: str, *, replace: bool) -> None:
    """Refuse, before any work is done, labels that cannot be written beside these rows."""
    from twinvec.data.write import check_rows_target
    from twinvec.errors import InputError

    if LABEL in rows.columns:
        raise InputError(f"The rows have a column {LABEL!r} already.", hint="Rename it, or leave out -o.")
    check_rows_target(output, (*rows.columns, LABEL), format=to_stdout(rows, output), replace=replace)


def to_stdout(rows: WholeRows, output: str) -> str | None:
    """The format of rows on standard output: their own, if it has columns and is text; a file has that of its ending.

    >>> to_stdout(WholeRows([], (), [], "tsv"), "-"), to_stdout(WholeRows([], (), [], "lines"), "-")
    ('tsv', 'jsonl')
    """
    if output != STDOUT:
        return None
    return rows.format if rows.format in ("csv", "tsv") else "jsonl"


def labelled(rows: WholeRows, labels: Ids) -> Iterator[list[object]]:
    """Every row with its label."""
    for values, label in zip(rows.values, labels.tolist(), strict=True):
        yield [*values, label]


def print_clusters(found: Clustering, *, as_json: bool) -> None:
    """The clusters on standard output: the largest as a table, or all as JSON lines."""
    if as_json or not sys.stdout.isatty():
        for each in found.as_dict()["clusters"]:
            print_json(each)
        return
    table = plain_table("cluster", "texts", "closeness", "key words and texts nearest to the middle")
    for each in found.clusters[:N_SHOWN]:
        shown = [", ".join(each.words), *(f"  {text}" for text in each.texts)]
        table.add_row(str(each.label), f"{each.size:,}", f"{each.closeness:.3f}", "\n".join(shown))
    n_more = len(found.clusters) - N_SHOWN
    if n_more > 0:
        table.add_row("...", "", "", f"and {n_more:,} smaller ones")
    open_console().print(table)
