"""``twinvec layers``: what each layer of a model does to the texts of a file."""

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
    gathered,
    layer_model_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.analysis import LayerSurvey
    from twinvec.analysis.layers import LayerFindings, LayerSettings

__all__ = ["layers"]


def print_findings(findings: LayerFindings) -> None:
    """Tables for every model, on standard output."""
    console = open_console()
    for number, survey in enumerate(findings.surveys):
        if number:
            console.print()
        head = f"{survey.model}: {survey.n_layers} layers, {survey.n_texts:,} texts, {survey.n_tokens:,} tokens"
        console.print(head, style="bold", soft_wrap=True)
        console.print("\nmean cosine of each layer to one before it", style="italic")
        console.print(_cosine_table(findings, survey))
        about = (
            f"layers {survey.layer_start} to {survey.n_layers}, words seen at least {findings.settings.min_count} times"
        )
        console.print(f"\nvariance of the cosines between neighbour layers, {about}", style="italic", soft_wrap=True)
        for part in _words(findings, survey):
            console.print(part, soft_wrap=isinstance(part, str))


def _cosine_table(findings: LayerFindings, survey: LayerSurvey) -> Table:
    distances = [k for k in findings.distances if k <= survey.n_layers]
    table = plain_table("layer", *(f"{k} before" for k in distances))
    for column in table.columns:
        column.justify = "right"
    for layer in range(1, survey.n_layers + 1):
        cells = [f"{survey.cosines[layer - k, layer]:.3f}" if k <= layer else "" for k in distances]
        table.add_row(str(layer), *cells, end_section=layer == survey.n_layers)
    table.add_row("mean", *(f"{survey.at_distance(k).mean():.3f}" for k in distances))
    return table


def _words(findings: LayerFindings, survey: LayerSurvey) -> Iterator[Table | str]:
    from twinvec.report.layers import group_rows, moves_more

    found, groups = findings.extremes(survey), findings.groups(survey)
    if not found.lowest:
        yield "No ranking: fewer than three words were seen that often, or there are fewer than two changes of layer."
        return
    table = plain_table("lowest", "", "middle", "", "highest", "")
    for row in zip(found.lowest, found.middle, reversed(found.highest), strict=True):
        table.add_row(*(cell for each in row for cell in (each.word, f"{each.variance:.4f}")))
    yield table
    if groups is not None:
        table = plain_table("", "words", "seen", "mean variance", "each word once")
        for column in table.columns[1:]:
            column.justify = "right"
        for cells in group_rows(groups):
            table.add_row(*cells)
        yield ""
        yield table
        yield moves_more(groups)


COUNT = click.IntRange(min=1)


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """What to look at, and how much of it to show."""

    limit: int | None
    max_distance: int
    layer_start: int | None
    n_words: int
    min_count: int
    list_file: str | None
    drawn: tuple[str, ...]

    def settings(self) -> LayerSettings:
        """As the library has them; the list of function words is read now."""
        from twinvec import LayerSettings
        from twinvec.analysis.words import FUNCTION_WORDS
        from twinvec.data.read import read_texts

        words = FUNCTION_WORDS
        if self.list_file is not None:
            words = frozenset(word.strip().lower() for word in read_texts(self.list_file))
        return LayerSettings(self.layer_start, self.max_distance, self.n_words, self.min_count, words)


LAYER_OPTIONS: dict[str, Decorator] = {
    "limit": click.option("--limit", type=COUNT, help="Read this many texts at most."),
    "max_distance": click.option(
        "--distance", "max_distance", type=COUNT, default=4, show_default=True, help="Show layers up to this far apart."
    ),
    "layer_start": click.option(
        "--layer-start",
        type=click.IntRange(min=0),
        help="First layer whose changes count for words and pictures. Default: SBERT-WK's, a third of the layers.",
    ),
    "n_words": click.option(
        "--words", "n_words", type=COUNT, default=10, show_default=True, help="Words to show of each sort."
    ),
    "min_count": click.option(
        "--min-count", type=COUNT, default=5, show_default=True, help="Rank words seen at least this often."
    ),
    "list_file": click.option(
        "--function-words",
        "list_file",
        metavar="FILE",
        help="Words that carry grammar, one per line. Default: a list of English ones.",
    ),
    "drawn": click.option(
        "--text",
        "drawn",
        multiple=True,
        help="With -o, draw this text; may be given several times. Default: the first.",
    ),
}
layer_options = gathered(LAYER_OPTIONS, "choice", build=LayerChoice)


@click.command()
@text_options
@click.option(
    "-m",
    "--model",
    "models",
    metavar="MODEL",
    multiple=True,
    help="Folder or name of a model; may be given several times, to compare. "
    f"Default: the model of {MODEL_VARIABLE}, or {DEFAULT_MODEL}.",
)
@layer_model_options
@layer_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a page (report.html), its plots, and all numbers (layers.json) here.",
)
@click.option("--force", is_flag=True, help="Replace a report that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def layers(
    *,
    source: TextSource,
    models: tuple[str, ...],
    model: ModelChoice,
    choice: LayerChoice,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show how the states of FILE's texts (default: '-', standard input) change from layer to layer.

    The mean cosine between a token's states in two layers; the words whose changes are the least and the most
    uneven, function words beside content words; with -o also pictures of single texts as SBERT-WK weighs their
    tokens and layers. FILE is read as by embed, once for all models, in bounded memory.
    """
    import twinvec
    from twinvec.report.html import check_folder
    from twinvec.report.layers import LAYER_DATA, write_layer_report

    if output is not None:
        check_folder(output, data=LAYER_DATA, replace=force)
    elif choice.drawn:
        raise click.UsageError("--text is drawn into a report; give -o FOLDER too.")
    models = models or (os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL,)
    findings = twinvec.analyze_layers(
        islice(source.texts(), choice.limit),
        [replace(model, name=name).embedder() for name in models],
        settings=choice.settings(),
        pictures=0 if output is None else choice.drawn or 1,
        source=source.file,
    )
    if as_json:
        print_json(findings.as_dict())
    else:
        print_findings(findings)
    if output is not None:
        write_layer_report(findings, output, replace=force)
        say(f"Wrote {output}/report.html, with its plots and {LAYER_DATA} beside it.")
