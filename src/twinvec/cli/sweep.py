"""``twinvec sweep``: which way to read a model is best for someone's own pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.choices import DEFAULT_MODEL, FORMATS
from twinvec.cli.layers import choose_names
from twinvec.cli.options import (
    MODEL_OPTIONS,
    MODEL_VARIABLE,
    Columns,
    Decorator,
    ModelChoice,
    columns_option,
    gathered,
)
from twinvec.cli.screen import open_console, plain_table, print_json, say
from twinvec.cli.train_options import score_range_option

if TYPE_CHECKING:
    from twinvec.analysis.sweep import Sweep
    from twinvec.data.examples import Examples
    from twinvec.encoder import Encoder

__all__ = ["sweep"]

PARTS = ("poolings", "layers", "wk", "whitening")
ENGINE = ("precision", "threads", "device", "runtime", "trust_pickle", "offline")


@dataclass(frozen=True, slots=True)
class PairChoice:
    """Which scored pairs, and how to read them."""

    file: str
    columns: Columns
    format: str | None
    score_range: tuple[float, float]

    def read(self) -> Examples:
        """The pairs; the first row that cannot be used is an error."""
        from twinvec.data.examples import read_examples
        from twinvec.data.roles import DataSource

        source = DataSource(self.file, "scored_pairs", self.columns, self.format, score_range=self.score_range)
        return read_examples(source)


@dataclass(frozen=True, slots=True)
class SweepOutput:
    """What to write, and where."""

    folder: Path | None
    save: Path | None
    force: bool
    as_json: bool
    n_shown: int

    def check(self) -> None:
        """Refuse, before any work is done, what could not be written."""
        from twinvec.errors import InputError
        from twinvec.files import is_taken
        from twinvec.report.html import check_folder
        from twinvec.report.sweep import SWEEP_DATA

        if self.folder is not None:
            check_folder(self.folder, data=SWEEP_DATA, replace=self.force)
        if self.save is not None and is_taken(self.save):
            raise InputError(f"{self.save} exists already.", hint="Choose another name, or remove it first.")


MODEL_ARGUMENT = click.argument("name", metavar="[MODEL]", default=DEFAULT_MODEL, envvar=MODEL_VARIABLE)
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
        help="Save the best reading that a model folder can say as a model.",
    ),
    "force": click.option("--force", is_flag=True, help="Replace a report that is there."),
    "as_json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    "n_shown": click.option(
        "--top", "n_shown", type=click.IntRange(min=1), default=10, show_default=True, help="Readings to print."
    ),
}
model_argument = gathered(
    {"name": MODEL_ARGUMENT, **{name: MODEL_OPTIONS[name] for name in ENGINE}}, "model", build=ModelChoice
)
pair_options = gathered(PAIR_OPTIONS, "pairs", build=PairChoice)
output_options = gathered(OUTPUT_OPTIONS, "output", build=SweepOutput)


@click.command()
@model_argument
@pair_options
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(PARTS),
    help="Leave this part out; may be given several times. Fewer readings need less evidence to stand out.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the resamples.")
@output_options
def sweep(*, model: ModelChoice, pairs: PairChoice, without: tuple[str, ...], seed: int, output: SweepOutput) -> None:
    """Score every way to read vectors out of MODEL on your own pairs: Spearman of cosine and score.

    Poolings (mean, cls, max, weightedmean, lasttoken) of each layer, and of the mean of the last two, of the first and
    the last, and of all; settings of SBERT-WK; each as it is, and whitened (fitted on the texts of the pairs). Says
    whether the best beats the model's own reading by more than chance, although it was picked as the best. MODEL is a
    folder or a name; without it, the model of TWINVEC_MODEL, or the one that comes with Twinvec. Every different text
    goes through it once.
    """
    from dataclasses import replace

    from twinvec.analysis.sweep import RESAMPLING, sweep_readings
    from twinvec.analysis.verdict import as_dict

    output.check()
    examples = pairs.read()
    encoder = model.load()
    found = sweep_readings(
        encoder,
        examples,
        model=choose_names([model.name])[0],
        without=without,
        resampling=replace(RESAMPLING, seed=seed),
        trust_pickle=model.trust_pickle,
    )
    if output.as_json:
        print_json(as_dict(found))
    else:
        print_sweep(found, output.n_shown)
    if output.folder is not None:
        from twinvec.report.sweep import write_sweep_report

        write_sweep_report(found, output.folder, replace=output.force)
        say(f"Wrote {output.folder}/report.html, with sweep.png and sweep.json beside it.")
    if output.save is not None:
        save_best(encoder, found, output.save, trust_pickle=model.trust_pickle)


def print_sweep(found: Sweep, n_shown: int) -> None:
    """The best readings, the model's own, and the verdict, on standard output."""
    from twinvec.analysis.verdict import advice, is_more_than_chance, verdict
    from twinvec.report.sweep import STARRED, sweep_row

    console = open_console()
    console.print(f"{found.model} on the {found.n_pairs:,} pairs of {found.source}", style="bold", soft_wrap=True)
    console.print("Spearman x 100 of cosine; p corrected for all readings", style="italic")
    table = plain_table("reading", "score", "95 % interval", "lead", "p")
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
    console.print(verdict(found), style="green" if is_more_than_chance(found, found.best) else "yellow", soft_wrap=True)
    for sentence in advice(found):
        console.print(sentence, soft_wrap=True)


def save_best(encoder: Encoder, found: Sweep, target: Path, *, trust_pickle: bool) -> None:
    """Save the best reading that can be, saying which and why not the best."""
    from twinvec.analysis.saving import save_reading
    from twinvec.analysis.verdict import sweep_card

    chosen = found.best_saved
    if found.best is not chosen:
        say(f"{found.best.candidate.name} cannot be saved: {found.best.why_not_saved}.")
    if chosen is found.own:
        encoder.save(target)
        say(f"Saved {target}: the model as it is, as no reading that can be saved scores higher.")
        return
    card = sweep_card(found, target.name)
    save_reading(encoder, chosen.candidate, target, card=card, whitening=found.whitening, trust_pickle=trust_pickle)
    say(f"Saved {target}: {chosen.candidate.name}, score {chosen.value:.2f}.")
