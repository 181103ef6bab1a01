"""``twinvec sweep``: find the best readout of a model for a file of scored pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.choices import FORMATS, SWEEP_PARTS
from twinvec.cli.options import (
    Columns,
    Decorator,
    ModelChoice,
    columns_option,
    json_option,
    layer_model_options,
    model_argument,
    option_group,
    out_option,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say
from twinvec.cli.train_options import score_range_option

if TYPE_CHECKING:
    from twinvec.analysis.sweep_result import Sweep
    from twinvec.data.roles import DataSource

__all__ = ["sweep"]


@dataclass(frozen=True, slots=True)
class PairChoice:
    """A file of scored pairs and how to read it."""

    file: str
    columns: Columns
    format: str | None
    score_range: tuple[float, float]

    def source(self) -> DataSource:
        """The file for the library."""
        from twinvec.data.roles import DataSource

        return DataSource(self.file, "scored_pairs", self.columns, self.format, score_range=self.score_range)


@dataclass(frozen=True, slots=True)
class SweepOutput:
    """What to write and print."""

    out: Path | None
    save: Path | None
    force: bool
    as_json: bool
    n_shown: int

    def check(self) -> None:
        """Fail before any work is done if the report cannot be written."""
        from twinvec.report.html import check_folder
        from twinvec.report.sweep import SWEEP_DATA

        if self.out is not None:
            check_folder(self.out, data=SWEEP_DATA, replace=self.force)


PAIR_OPTIONS: dict[str, Decorator] = {
    "file": click.option(
        "--pairs",
        "file",
        metavar="FILE",
        required=True,
        help="File of scored pairs, with columns text1, text2 and score.",
    ),
    "columns": columns_option,
    "format": click.option("--format", type=click.Choice(FORMATS), help="Format of FILE. Default: from its extension."),
    "score_range": score_range_option,
}
OUTPUT_OPTIONS: dict[str, Decorator] = {
    "out": out_option(
        "FOLDER",
        "Write a report (report.html), a heat map (sweep.png) and all numbers (sweep.json) here.",
        type=click.Path(path_type=Path),
    ),
    "save": click.option(
        "--save",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Save the model with the best readout that a model folder can store.",
    ),
    "force": click.option("--force", is_flag=True, help="Overwrite an existing report."),
    "as_json": json_option,
    "n_shown": click.option(
        "--top", "n_shown", type=click.IntRange(min=1), default=10, help="Number of readouts to print."
    ),
}
pair_options = option_group(PAIR_OPTIONS, "pairs", build=PairChoice)
output_options = option_group(OUTPUT_OPTIONS, "output", build=SweepOutput)


@click.command()
@model_argument
@pair_options
@layer_model_options
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(SWEEP_PARTS),
    help="Leave this part out. Repeatable. With fewer readouts, a smaller lead is significant.",
)
@click.option("--seed", type=int, default=0, help="Random seed of the resampling.")
@output_options
def sweep(
    *, name: str, model: ModelChoice, pairs: PairChoice, without: tuple[str, ...], seed: int, output: SweepOutput
) -> None:
    """Score every readout of MODEL on your own pairs, by Spearman correlation of cosine and score.

    Tries the poolings mean, cls, max, weightedmean and lasttoken on each layer, on the mean of the last two layers, of
    the first and the last, and of all layers; and settings of SBERT-WK. Each is tried without and with whitening,
    fitted on the texts of the pairs. Tests whether the best readout beats the model's own by more than chance,
    corrected for having picked the best of many.

    MODEL is a folder or a name. Default: TWINVEC_MODEL, or the model that comes with Twinvec. It encodes each distinct
    text once.
    """
    import twinvec

    output.check()
    result = twinvec.sweep(
        replace(model, name=name).embedder(), pairs.source(), without=without, seed=seed, save=output.save, tell=say
    )
    if output.as_json:
        print_json(result.as_dict())
    else:
        print_sweep(result, output.n_shown)
    if output.out is not None:
        from twinvec.report.sweep import write_sweep_report

        write_sweep_report(result, output.out, replace=output.force)
        say(f"Wrote {output.out}/report.html, sweep.png and sweep.json.")


def print_sweep(result: Sweep, n_shown: int) -> None:
    """Print the best readouts, the model's own, and the verdict."""
    from twinvec.report.sweep import STARRED, sweep_row

    console = open_console()
    console.print(f"{result.model} on the {result.n_pairs:,} pairs of {result.source}", style="bold", soft_wrap=True)
    console.print("Spearman correlation of the cosine x 100; p is corrected for the number of readouts", style="italic")
    table = plain_table("readout", "score", "95 % interval", "lead", "p", n_left=1)
    for column in table.columns[1:]:
        column.no_wrap = True
    shown = result.ranked[:n_shown]
    for each in shown:
        table.add_row(*sweep_row(result, each))
    if result.own not in shown:
        table.add_row("...")
        table.add_row(*sweep_row(result, result.own))
    console.print(table)
    if any(each.why_not_saved for each in shown):
        console.print(STARRED)
    console.print()
    console.print(
        result.verdict, style="green" if result.is_more_than_chance(result.best) else "yellow", soft_wrap=True
    )
    for sentence in result.advice:
        console.print(sentence, soft_wrap=True)
