"""``twinvec cluster``: group similar texts and describe each group."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.choices import LINKAGES, PAIR_METHODS, PROJECTIONS, PairMethod, Projection
from twinvec.cli.options import (
    METHOD_OPTIONS,
    Decorator,
    MethodChoice,
    ModelChoice,
    PromptChoice,
    TextSource,
    csv_safe_option,
    json_lines_option,
    method_choice,
    model_options,
    option_group,
    out_option,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say, wants_json

if TYPE_CHECKING:
    from twinvec.cluster import Clustering, ClusterSettings
    from twinvec.data.read import TextRows
    from twinvec.types import Ids

__all__ = ["cluster"]

# algorithm -> its settings
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
    """An algorithm and its settings from the command line."""

    algorithm: str
    options: dict[str, Any]
    method: MethodChoice

    def settings(self) -> ClusterSettings:
        """The settings as an object of the library."""
        import twinvec.cluster as library

        if self.algorithm == "kmeans":
            return library.KMeansSettings(**self.options)
        if self.algorithm == "agglomerative":
            return library.AgglomerativeSettings(**self.options)
        return library.CommunitySettings(**self.options)


def cluster_choice(algorithm: str, method: PairMethod, max_memory: str | None, **settings: object) -> ClusterChoice:
    """Build the choice; refuse settings of another algorithm."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in ALGORITHMS[algorithm]:
            users = " and ".join(each for each, names in ALGORITHMS.items() if name in names)
            raise click.UsageError(f"{OPTION_NAMES[name]} is for {users}, not for {algorithm}.")
    for option, is_set in (("--method", method != PAIR_METHODS[0]), ("--max-memory", max_memory is not None)):
        if is_set and algorithm != "communities":
            raise click.UsageError(f"{option} is for communities, not for {algorithm}.")
    return ClusterChoice(algorithm, given, method_choice(method, max_memory))


CLUSTER_OPTIONS: dict[str, Decorator] = {
    "algorithm": click.option(
        "-a",
        "--algorithm",
        type=click.Choice(tuple(ALGORITHMS)),
        default="kmeans",
        help="kmeans: a fixed number of clusters, with every text in one. agglomerative: merge similar clusters, for "
        "thousands of texts at most. communities: texts near a central text; other texts stay unassigned.",
    ),
    "n_clusters": click.option(
        "-k", "n_clusters", type=click.IntRange(min=1), help="kmeans: number of clusters. Default: 8."
    ),
    "seed": click.option(
        "--seed", type=click.IntRange(min=0), help="kmeans: random seed; the same seed gives the same clusters."
    ),
    "threshold": click.option(
        "--threshold",
        type=click.FloatRange(-1, 1),
        help="agglomerative: merge clusters down to this cosine (default: 0.6). communities: lowest cosine of a text "
        "to the central one (default: 0.75).",
    ),
    "linkage": click.option(
        "--linkage",
        type=click.Choice(LINKAGES),
        help="agglomerative: compare clusters by the mean cosine of their texts (average, the default) or the lowest "
        "(complete).",
    ),
    "min_size": click.option(
        "--min-size", type=click.IntRange(min=1), help="communities: smallest community to report. Default: 10."
    ),
    **METHOD_OPTIONS,
}
cluster_options = option_group(CLUSTER_OPTIONS, "choice", build=cluster_choice)


STDOUT = "-"
LABEL = "cluster"
N_SHOWN = 20
COUNT = click.IntRange(min=1)


@click.command()
@text_options
@model_options()
@prompt_options
@cluster_options
@click.option("--texts", "n_texts", type=COUNT, default=3, help="Texts to show per cluster.")
@click.option("--words", "n_words", type=COUNT, default=5, help="Key words to show per cluster.")
@out_option("FILE", f"Write every row with its {LABEL} here: .csv, .tsv, .jsonl or .parquet; '-' is standard output.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a report (report.html, report.md), its map and all numbers (clusters.json) here.",
)
@click.option(
    "--projection",
    type=click.Choice(PROJECTIONS),
    default="auto",
    help="How to project texts onto the map. auto: umap if installed (extra: map), else pca.",
)
@csv_safe_option
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_lines_option
def cluster(
    *,
    source: TextSource,
    model: ModelChoice,
    prompt: PromptChoice,
    choice: ClusterChoice,
    n_texts: int,
    n_words: int,
    out: str | None,
    report: Path | None,
    projection: Projection,
    csv_safe: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Group the texts of FILE (default: '-', standard input) by meaning.

    FILE has the formats of twinvec embed. Clusters are numbered from 0, largest first; texts without a cluster get
    -1. Each cluster is shown with its most distinctive words and the texts nearest to its center. On a terminal the
    output is a table; in a file or a pipe it is JSON lines, one per cluster, with the rows of its texts, counted
    from 0.
    """
    import twinvec
    from twinvec.data.read import read_text_rows
    from twinvec.report.clusters import CLUSTER_DATA, ClusterMap, summary, write_cluster_report
    from twinvec.report.html import PAGE, check_folder

    if report is not None:
        check_folder(report, data=CLUSTER_DATA, replace=force)
    rows = read_text_rows(source.file, source.column, format=source.format)
    if out is not None:
        check_labels(rows, out, replace=force)
    done = twinvec.cluster_texts(
        rows.texts,
        choice.settings(),
        model=model.embedder(prompt),
        n_texts=n_texts,
        n_words=n_words,
        projection=projection if report is not None else None,
        **asdict(choice.method),
        tell=say,
    )
    clusters = done.clusters
    if report is not None and done.map is not None:
        drawn = ClusterMap(rows.texts, done.labels, done.map.places, done.map.projection)
        write_cluster_report(clusters, drawn, report, replace=force)
    if out is not None:
        write_labels(rows, done.labels, out, replace=force, csv_safe=csv_safe)
    if out != STDOUT:
        print_clusters(clusters, as_json=as_json)
    say(f"{summary(clusters)} {clusters.method[:1].upper()}{clusters.method[1:]}.")
    if not clusters.clusters:
        say("Lower --threshold or --min-size to find more.")
    if report is not None:
        say(f"Wrote {report / PAGE}, its map and {CLUSTER_DATA}.")


def check_labels(rows: TextRows, output: str, *, replace: bool) -> None:
    """Fail before any work is done if the labels cannot be written."""
    from twinvec.data.write import check_rows_target
    from twinvec.errors import InputError

    if LABEL in rows.columns:
        raise InputError(f"The rows already have a column {LABEL!r}.", hint="Rename it, or omit -o.")
    check_rows_target(output, (*rows.columns, LABEL), format=to_stdout(rows, output), replace=replace)


def to_stdout(rows: TextRows, output: str) -> str | None:
    """The format for standard output: that of the rows if it is csv or tsv, else jsonl; None for a file.

    >>> from twinvec.data.read import TextRows
    >>> to_stdout(TextRows([], (), [], "tsv"), "-"), to_stdout(TextRows([], (), [], "lines"), "-")
    ('tsv', 'jsonl')
    """
    if output != STDOUT:
        return None
    return rows.format if rows.format in ("csv", "tsv") else "jsonl"


def write_labels(rows: TextRows, labels: Ids, output: str, *, replace: bool, csv_safe: bool) -> None:
    """Write every row with its label."""
    from twinvec.data.write import write_rows

    labeled = ([*values, label] for values, label in zip(rows.values, labels.tolist(), strict=True))
    columns, format = (*rows.columns, LABEL), to_stdout(rows, output)
    write_rows(labeled, columns, output, format=format, replace=replace, csv_safe=csv_safe)


def print_clusters(clusters: Clustering, *, as_json: bool) -> None:
    """Print the largest clusters as a table, or all as JSON lines."""
    if wants_json(as_json=as_json):
        for each in clusters.as_dict()["clusters"]:
            print_json(each)
        return
    table = plain_table("cluster", "texts", "closeness", "key words and texts nearest to the center")
    for each in clusters.clusters[:N_SHOWN]:
        lines = [", ".join(each.words), *(f"  {text}" for text in each.texts)]
        table.add_row(str(each.label), f"{each.size:,}", f"{each.closeness:.3f}", "\n".join(lines))
    n_more = len(clusters.clusters) - N_SHOWN
    if n_more > 0:
        table.add_row("...", "", "", f"and {n_more:,} smaller ones")
    open_console().print(table)
