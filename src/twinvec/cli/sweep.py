"""``twinvec sweep``: which way to read a model is best for someone's own pairs."""

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
    gathered,
    layer_model_options,
    model_argument,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say
from twinvec.cli.train_options import score_range_option

if TYPE_CHECKING:
    from twinvec.analysis.sweep_result import Sweep
    from twinvec.data.roles import DataSource

__all__ = ["sweep"]


@dataclass(frozen=True, slots=True)
class PairChoice:
    """Which scored pairs, and how to read them."""

    file: str
    columns: Columns
    format: str | None
    score_range: tuple[float, float]

    def source(self) -> DataSource:
        """As the library reads it."""
        from twinvec.data.roles import DataSource

        return DataSource(self.file, "scored_pairs", self.columns, self.format, score_range=self.score_range)


@dataclass(frozen=True, slots=True)
class SweepOutput:
    """What to write, and where."""

    folder: Path | None
    save: Path | None
    force: bool
    as_json: bool
    n_shown: int

    def check(self) -> None:
        """Refuse, before any work is done, a report that could not be written."""
        from twinvec.report.html import check_folder
        from twinvec.report.sweep import SWEEP_DATA

        if self.folder is not None:
            check_folder(self.folder, data=SWEEP_DATA, replace=self.force)


PAIR_OPTIONS: dict[str, Decorator] = {
    "file": click.option("--pairs", "file", metavar="FILE", required=True, help="Scored pairs: text1, text2, score."),
    "columns": columns_option,
    "format": click.option("--format", type=click.Choice(FORMATS), help="Format of FILE. Default: by its ending."),
    "score_range": score_range_option,
}
OUTPUT_OPTIONS: dict[str, Decorator] = {
    "folder": click.option(
        "-o",
        "--output",
        "folder",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Write a page (report.html), the heat map (sweep.png) and all numbers (sweep.json) here.",
    ),
    "save": click.option(
        "--save",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Save a model with the best readout that a model folder can hold.",
    ),
    "force": click.option("--force", is_flag=True, help="Replace a report that is there."),
    "as_json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    "n_shown": click.option(
        "--top", "n_shown", type=click.IntRange(min=1), default=10, show_default=True, help="Readouts to print."
    ),
}
pair_options = gathered(PAIR_OPTIONS, "pairs", build=PairChoice)
output_options = gathered(OUTPUT_OPTIONS, "output", build=SweepOutput)


@click.command()
@model_argument
@pair_options
@layer_model_options
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(SWEEP_PARTS),
    help="Leave this part out; may be given several times. Fewer readouts need less evidence to stand out.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the resamples.")
@output_options
def sweep(
    *, name: str, model: ModelChoice, pairs: PairChoice, without: tuple[str, ...], seed: int, output: SweepOutput
) -> None:
    """Score every readout of MODEL on your own pairs: Spearman of cosine and score.

    Poolings (mean, cls, max, weightedmean, lasttoken) of each layer, and of the mean of the last two, of the first and
    the last, and of all; settings of SBERT-WK; each as it is, and whitened (fitted on the texts of the pairs). Says
    whether the best beats the model's own readout by more than chance, although it was picked as the best. MODEL is a
    folder or a name; without it, the model of TWINVEC_MODEL, or the one that comes with Twinvec. Every different text
    goes through it once.
    """
    import twinvec

    output.check()
    found = twinvec.sweep(
        replace(model, name=name).embedder(),
        pairs.source(),
        without=without,
        seed=seed,
        save=output.save,
        tell=say,
    )
    if output.as_json:
        print_json(found.as_dict())
    else:
        print_sweep(found, output.n_shown)
    if output.folder is not None:
        from twinvec.report.sweep import write_sweep_report

        write_sweep_report(found, output.folder, replace=output.force)
        say(f"Wrote {output.folder}/report.html, with sweep.png and sweep.json beside it.")


def print_sweep(found: Sweep, n_shown: int) -> None:
    """The best readouts, the model's own, and the verdict, on standard output."""
    from twinvec.report.sweep import STARRED, sweep_row

    console = open_console()
    console.print(f"{found.model} on the {found.n_pairs:,} pairs of {found.source}", style="bold", soft_wrap=True)
    console.print("Spearman x 100 of cosine; p corrected for all readouts", style="italic")
    table = plain_table("readout", "score", "95 % interval", "lead", "p")
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    ranked = found.ranked
    for each in ranked[:n_shown]:
        table.add_row(*sweep_row(found, each))
    if found.own not in ranked[:n_shown]:
        table.add_row("...")
        table.add_row(*sweep_row(found, found.own))
    console.print(table)
    if any(each.why_not_saved for each in ranked[:n_shown]):
        console.print(STARRED)
    console.print()
    console.print(found.verdict, style="green" if found.is_more_than_chance(found.best) else "yellow", soft_wrap=True)
    for sentence in found.advice:
        console.print(sentence, soft_wrap=True)
