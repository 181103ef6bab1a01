"""``twinvec layers``: how the layers of a model change the texts of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.choices import DEFAULT_MODEL
from twinvec.cli.options import (
    MODEL_VARIABLE,
    Decorator,
    ModelChoice,
    TextSource,
    json_option,
    layer_model_options,
    option_group,
    out_option,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.analysis import LayerSurvey
    from twinvec.analysis.layers import LayerFindings, LayerSettings

__all__ = ["layers"]


def print_findings(findings: LayerFindings) -> None:
    """Print the tables of every model."""
    console = open_console()
    for number, survey in enumerate(findings.surveys):
        if number:
            console.print()
        head = f"{survey.model}: {survey.n_layers} layers, {survey.n_texts:,} texts, {survey.n_tokens:,} tokens"
        console.print(head, style="bold", soft_wrap=True)
        console.print("\nmean cosine of each layer to an earlier one", style="italic")
        console.print(_cosine_table(findings, survey))
        about = (
            f"layers {survey.layer_start} to {survey.n_layers}, words seen at least {findings.settings.min_count} times"
        )
        console.print(f"\nvariance of the cosines between adjacent layers, {about}", style="italic", soft_wrap=True)
        for part in _word_parts(findings, survey):
            console.print(part, soft_wrap=isinstance(part, str))


def _cosine_table(findings: LayerFindings, survey: LayerSurvey) -> Table:
    distances = [k for k in findings.distances if k <= survey.n_layers]
    table = plain_table("layer", *(f"{k} before" for k in distances), n_left=0)
    for layer in range(1, survey.n_layers + 1):
        cells = [f"{survey.cosines[layer - k, layer]:.3f}" if k <= layer else "" for k in distances]
        table.add_row(str(layer), *cells, end_section=layer == survey.n_layers)
    table.add_row("mean", *(f"{survey.at_distance(k).mean():.3f}" for k in distances))
    return table


def _word_parts(findings: LayerFindings, survey: LayerSurvey) -> Iterator[Table | str]:
    from twinvec.report.layers import group_rows, moves_more

    extremes, groups = findings.extremes(survey), findings.groups(survey)
    if not extremes.lowest:
        yield "No ranking: fewer than three words occur that often, or the model has too few layers."
        return
    table = plain_table("lowest", "", "middle", "", "highest", "")
    for row in zip(extremes.lowest, extremes.middle, reversed(extremes.highest), strict=True):
        table.add_row(*(cell for each in row for cell in (each.word, f"{each.variance:.4f}")))
    yield table
    if groups is not None:
        table = plain_table("", "words", "seen", "mean variance", "each word once", n_left=1)
        for cells in group_rows(groups):
            table.add_row(*cells)
        yield ""
        yield table
        yield moves_more(groups)


COUNT = click.IntRange(min=1)


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """What to analyze, and how much to show."""

    limit: int | None
    max_distance: int
    layer_start: int | None
    n_words: int
    min_count: int
    list_file: str | None
    plotted: tuple[str, ...]

    def settings(self) -> LayerSettings:
        """The settings for the library; reads the list of function words."""
        from twinvec import LayerSettings
        from twinvec.analysis.words import FUNCTION_WORDS
        from twinvec.data.read import read_texts

        words = FUNCTION_WORDS
        if self.list_file is not None:
            words = frozenset(word.strip().lower() for word in read_texts(self.list_file))
        return LayerSettings(self.layer_start, self.max_distance, self.n_words, self.min_count, words)


LAYER_OPTIONS: dict[str, Decorator] = {
    "limit": click.option("--limit", type=COUNT, help="Read at most this many texts."),
    "max_distance": click.option(
        "--distance", "max_distance", type=COUNT, default=4, help="Compare layers up to this far apart."
    ),
    "layer_start": click.option(
        "--layer-start",
        type=click.IntRange(min=0),
        help="First layer to use for words and plots. Default: that of SBERT-WK, a third of the layers.",
    ),
    "n_words": click.option("--words", "n_words", type=COUNT, default=10, help="Words to show per column."),
    "min_count": click.option(
        "--min-count", type=COUNT, default=5, help="Rank only words that occur at least this often."
    ),
    "list_file": click.option(
        "--function-words",
        "list_file",
        metavar="FILE",
        help="File of function words (grammatical words), one per line. Default: a built-in English list.",
    ),
    "plotted": click.option(
        "--text", "plotted", multiple=True, help="With -o, plot this text. Repeatable. Default: the first text of FILE."
    ),
}
layer_options = option_group(LAYER_OPTIONS, "choice", build=LayerChoice)


@click.command()
@text_options
@click.option(
    "-m",
    "--model",
    "models",
    metavar="MODEL",
    multiple=True,
    help=f"Model folder or name. Repeatable, to compare models. Default: {MODEL_VARIABLE}, or {DEFAULT_MODEL}.",
)
@layer_model_options
@layer_options
@out_option(
    "FOLDER",
    "Write a report (report.html), its plots and all numbers (layers.json) here.",
    type=click.Path(path_type=Path),
)
@click.option("--force", is_flag=True, help="Overwrite an existing report.")
@json_option
def layers(
    *,
    source: TextSource,
    models: tuple[str, ...],
    model: ModelChoice,
    choice: LayerChoice,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show how the token states of the texts of FILE (default: '-', standard input) change from layer to layer.

    Prints the mean cosine between a token's states in two layers; the words whose states change most and least
    evenly; and function words compared with content words. With -o, also writes plots of single texts with SBERT-WK's
    weights of tokens and layers. FILE has the formats of twinvec embed; it is read once, in bounded memory.
    """
    import twinvec
    from twinvec.report.html import check_folder
    from twinvec.report.layers import LAYER_DATA, write_layer_report

    if out is not None:
        check_folder(out, data=LAYER_DATA, replace=force)
    elif choice.plotted:
        raise click.UsageError("--text requires a report; add -o FOLDER.")
    models = models or (os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL,)
    findings = twinvec.analyze_layers(
        islice(source.texts(), choice.limit),
        [replace(model, name=name).embedder() for name in models],
        settings=choice.settings(),
        pictures=0 if out is None else choice.plotted or 1,
        source=source.file,
    )
    if as_json:
        print_json(findings.as_dict())
    else:
        print_findings(findings)
    if out is not None:
        write_layer_report(findings, out, replace=force)
        say(f"Wrote {out}/report.html, its plots and {LAYER_DATA}.")
