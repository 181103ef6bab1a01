"""What ``twinvec layers`` prints: for every model its cosines between layers, and its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinvec.cli.screen import open_console, plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.lab import LayerSurvey
    from twinvec.lab.findings import LayerFindings

__all__ = ["print_findings"]


def print_findings(findings: LayerFindings) -> None:
    """Tables for every model, on standard output."""
    console = open_console()
    for place, survey in enumerate(findings.surveys):
        if place:
            console.print()
        head = f"{survey.model}: {survey.n_layers} layers, {survey.n_texts:,} texts, {survey.n_tokens:,} tokens"
        console.print(head, style="bold", soft_wrap=True)
        console.print("\nmean cosine of each layer to one before it", style="italic")
        console.print(_cosine_table(findings, survey))
        about = f"layers {survey.layer_start} to {survey.n_layers}, words seen at least {findings.min_count} times"
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
    from twinvec.report.layer_page import group_rows, moves_more

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
