"""``twinvec cluster``: groups of texts that say alike, and what is in them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from twinvec.cli.cluster_options import PROJECTIONS, ClusterChoice, cluster_options
from twinvec.cli.options import (
    ModelChoice,
    PromptChoice,
    TextSource,
    csv_safe_option,
    model_options,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say
from twinvec.cli.whole_rows import WholeRows, read_whole_rows

if TYPE_CHECKING:
    from twinvec.cluster import Clustering
    from twinvec.types import Ids

__all__ = ["cluster"]

STDOUT = "-"
LABEL = "cluster"
N_SHOWN = 20
COUNT = click.IntRange(min=1)


@click.command(short_help="Group the texts of a file, and show what is in the groups.")
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
    from twinvec.cluster.mapping import choose_projection
    from twinvec.report.cluster_map import ClusterMap
    from twinvec.report.clusters import CLUSTER_DATA, summary, write_cluster_report
    from twinvec.report.folder import PAGE, check_folder
    from twinvec.tables import write_rows

    if report is not None:
        check_folder(report, data=CLUSTER_DATA, replace=force)
    rows = read_whole_rows(source)
    if output is not None:
        check_labels(rows, output, replace=force)
    chosen = choose_projection(projection, len(rows.texts)) if report is not None else "pca"
    vectors = model.load().encode(rows.texts, prompt=prompt.prompt, prompt_name=prompt.prompt_name)
    fitted = choice.fit(vectors)
    labels, method = fitted.labels_, fitted.settings.words()
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
    from twinvec.errors import InputError
    from twinvec.tables import check_rows_target

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
