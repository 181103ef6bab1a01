"""``twinvec data negatives``: pairs to triplets, with negatives that a model finds hard."""

from __future__ import annotations

import click

from twinvec.cli.data import EXAMPLE_OPTIONS
from twinvec.cli.options import ModelChoice, csv_safe_option, model_options
from twinvec.cli.screen import say

__all__ = ["negatives"]

COLUMNS = ("anchor", "positive", "negative")


@click.command(short_help="Find hard negatives for pairs, and write triplets to train on.")
@EXAMPLE_OPTIONS["file"]
@EXAMPLE_OPTIONS["columns"]
@EXAMPLE_OPTIONS["format"]
@model_options()
@click.option("-o", "--output", required=True, metavar="FILE", help="File of triplets: .tsv, .csv, .jsonl or .parquet.")
@click.option("--pool", metavar="FILE", help="More texts that may be negatives. Default: the positives alone.")
@click.option("-n", type=click.IntRange(min=1), default=1, show_default=True, help="Negatives for each pair.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.05,
    show_default=True,
    help="By how much a negative's cosine must be below the positive's: what is nearer may well be right.",
)
@click.option("--highest", type=float, help="No negative with a higher cosine than this.")
@click.option("--skip", type=click.IntRange(min=0), default=0, show_default=True, help="Pass over the hardest so many.")
@click.option(
    "--depth", type=click.IntRange(min=1), default=100, show_default=True, help="Candidates looked at for each anchor."
)
@csv_safe_option
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def negatives(
    *,
    file: str,
    columns: dict[str, str | tuple[str, ...]],
    format: str | None,
    model: ModelChoice,
    output: str,
    pool: str | None,
    csv_safe: bool,
    force: bool,
    **choices: float,
) -> None:
    """Find hard negatives for the pairs of FILE, which has the columns anchor and positive; write triplets.

    A negative is a text near the anchor by the model's cosine that is no positive of the same anchor, in whatever
    case and punctuation, and that scores lower than the pair by a margin. twinvec train reads the triplets.
    """
    from twinvec.errors import InputError
    from twinvec.examples import DataSource, read_examples
    from twinvec.search import NegativeSettings, mine_triplets
    from twinvec.tables import check_rows_target, read_texts, write_rows

    settings = NegativeSettings(**choices)  # type: ignore[arg-type] # click has made whole numbers of them
    check_rows_target(output, COLUMNS, replace=force)
    examples = read_examples(DataSource(file, "ranked", columns, format))
    places = zip(examples.places["anchor"].tolist(), examples.places["positive"].tolist(), strict=True)
    pairs = [(examples.texts[anchor], examples.texts[positive]) for anchor, positive in places]
    others = list(read_texts(pool)) if pool is not None else []
    found = mine_triplets(pairs, model.load().encode, pool=others, settings=settings)
    n_served = len({(triplet.anchor, triplet.positive) for triplet in found})
    if not found:
        raise InputError("No pair has a negative within these limits.", hint="Lower --margin, or raise --depth.")
    write_rows(found, COLUMNS, output, replace=force, csv_safe=csv_safe)
    say(f"Wrote {len(found):,} triplets to {output}; {n_served:,} of {len(set(pairs)):,} different pairs have one.")
