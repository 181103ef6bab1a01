"""``twinvec layers``: what the layers of some models do to the texts of a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.cli.options import (
    MODEL_OPTIONS,
    MODEL_VARIABLE,
    Decorator,
    ModelChoice,
    TextSource,
    gathered,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, say
from twinvec.shipped import DEFAULT_MODEL

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.encoder import Encoder
    from twinvec.lab import LayerSurvey
    from twinvec.lab.findings import LayerFindings

__all__ = ["choose_names", "layers"]

ENGINE = ("precision", "threads", "device", "runtime", "long", "trust_pickle", "offline")
MODELS_OPTION = click.option(
    "-m",
    "--model",
    "names",
    metavar="MODEL",
    multiple=True,
    help="Folder or name of a model; may be given several times, to compare. "
    f"Default: the model of {MODEL_VARIABLE}, or {DEFAULT_MODEL}.",
)


def several_models(names: tuple[str, ...], **settings: Any) -> list[ModelChoice]:  # noqa: ANN401 - click has checked them
    """The models asked for, each to be run in the same way."""
    chosen = names or (os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL,)
    return [ModelChoice(name, **settings) for name in dict.fromkeys(chosen)]


MODELS_OPTIONS: dict[str, Decorator] = {"names": MODELS_OPTION, **{name: MODEL_OPTIONS[name] for name in ENGINE}}
models_options = gathered(MODELS_OPTIONS, "models", build=several_models)
COUNT = click.IntRange(min=1)


@click.command(short_help="Show what the layers of models do to the texts of a file.")
@text_options
@models_options
@click.option("--limit", type=COUNT, help="Read this many texts at most.")
@click.option("--distance", type=COUNT, default=4, show_default=True, help="Compare layers up to this far apart.")
@click.option(
    "--layer-start",
    type=click.IntRange(min=0),
    help="First layer whose changes count for words and pictures. Default: SBERT-WK's, a third of the layers.",
)
@click.option("--words", "n_words", type=COUNT, default=10, show_default=True, help="Words to show of each sort.")
@click.option("--min-count", type=COUNT, default=5, show_default=True, help="Rank words seen at least this often.")
@click.option(
    "--function-words",
    "list_file",
    metavar="FILE",
    help="Words that carry grammar, one per line. Default: a list of English ones.",
)
@click.option("--text", "shown", multiple=True, help="Draw this text; may be given several times. Default: the first.")
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
    models: list[ModelChoice],
    limit: int | None,
    distance: int,
    layer_start: int | None,
    n_words: int,
    min_count: int,
    list_file: str | None,
    shown: tuple[str, ...],
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show how the states of FILE's texts (default: '-', standard input) change from layer to layer.

    The mean cosine between a token's states in two layers; the words whose changes are the least and the most
    uneven, function words beside content words; with -o also pictures of single texts as SBERT-WK weighs their
    tokens and layers. FILE is read as by embed, once for all models, in bounded memory.
    """
    from twinvec.lab import survey_layers
    from twinvec.lab.findings import LayerFindings
    from twinvec.lab.function_words import FUNCTION_WORDS
    from twinvec.lab.picture import picture_text
    from twinvec.report.folder import check_folder
    from twinvec.report.layer_page import LAYER_DATA, write_layer_report
    from twinvec.tables import read_texts
    from twinvec.wk import WKSettings

    if output is not None:
        check_folder(output, data=LAYER_DATA, replace=force)
    listed = FUNCTION_WORDS if list_file is None else {word.strip().lower() for word in read_texts(list_file)}
    first, texts = _peeked(islice(source.texts(), limit))
    encoders = _load(models)
    surveys = survey_layers(encoders, texts, layer_start=layer_start, function_words=listed)
    pictures = []
    if output is not None:
        settings = WKSettings(layer_start=layer_start)
        pictures = [
            picture_text(encoder, text, model=name, settings=settings)
            for text in shown or (first,)
            for name, encoder in encoders.items()
        ]
    findings = LayerFindings(source.file, surveys, pictures, distance, n_words, min_count)
    if as_json:
        click.echo(json.dumps(findings.as_dict(), ensure_ascii=False))
    else:
        print_findings(findings)
    if output is not None:
        write_layer_report(findings, output, replace=force)
        say(f"Wrote {output}/report.html, with its plots and {LAYER_DATA} beside it.")


def _peeked(texts: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The first text, and all of them; reading it shows at once whether the file is good."""
    first = next(texts)
    return first, chain((first,), texts)


def _load(models: Sequence[ModelChoice]) -> dict[str, Encoder]:
    """The encoders by the names under which they are shown."""
    names = choose_names([choice.name for choice in models])
    return {name: choice.load() for name, choice in zip(names, models, strict=True)}


def choose_names(given: Sequence[str]) -> list[str]:
    """What models are called in plots: the last part of the path, unless two share it.

    >>> choose_names(["/models/minilm", "org/mpnet/"]), choose_names(["a/m", "b/m"])
    (['minilm', 'mpnet'], ['a/m', 'b/m'])
    """
    short = [Path(name).name or name for name in given]
    return short if len(set(short)) == len(short) else list(given)


def print_findings(findings: LayerFindings) -> None:
    """Tables for every model, on standard output."""
    console = open_console()
    for survey in findings.surveys:
        head = f"{survey.model}: {survey.n_layers} layers, {survey.n_texts:,} texts, {survey.n_tokens:,} tokens"
        console.print(head, style="bold", soft_wrap=True)
        console.print()
        console.print("mean cosine of each layer to one before it", style="italic")
        console.print(_cosine_table(findings, survey))
        console.print()
        _print_words(console, findings, survey)
        console.print()


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


def _print_words(console: Any, findings: LayerFindings, survey: LayerSurvey) -> None:  # noqa: ANN401 - rich's
    from twinvec.report.layer_page import group_rows, moves_more

    found, groups = findings.extremes(survey), findings.groups(survey)
    console.print(
        f"words by the variance of the cosines between neighbour layers, layers {survey.layer_start} to "
        f"{survey.n_layers}; those seen at least {findings.min_count} times",
        style="italic",
        soft_wrap=True,
    )
    if not found.lowest:
        console.print("Fewer than three words were seen that often, or there are too few layers to vary between.")
        return
    table = plain_table("lowest", "", "middle", "", "highest", "")
    for row in zip(found.lowest, found.middle, reversed(found.highest), strict=True):
        table.add_row(*(cell for each in row for cell in (each.word, f"{each.variance:.4f}")))
    console.print(table)
    if groups is not None:
        console.print()
        table = plain_table("", "words", "seen", "variance as seen", "each word once")
        for column in table.columns[1:]:
            column.justify = "right"
        for cells in group_rows(groups):
            table.add_row(*cells)
        console.print(table)
        console.print(f"Of all: {moves_more(groups)}".replace("Of all: of", "Of"), soft_wrap=True)
