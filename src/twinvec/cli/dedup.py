"""``twinvec dedup``: remove near-duplicate texts from a file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from twinvec.choices import KEEPS
from twinvec.cli.options import (
    MethodChoice,
    ModelChoice,
    PromptChoice,
    TextSource,
    csv_safe_option,
    method_options,
    model_options,
    out_option,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, say

if TYPE_CHECKING:
    from twinvec.choices import Keep
    from twinvec.search import Duplicates

__all__ = ["dedup"]

STDOUT = "-"
N_SHOWN = 10
REPORT_COLUMNS = ("row", "text", "repeats_row", "repeats", "score")


@click.command()
@text_options
@model_options()
@prompt_options
@out_option("FILE", "Write the remaining rows here.", default=STDOUT)
@click.option(
    "--threshold",
    type=click.FloatRange(-1, 1),
    default=0.95,
    help="Lowest cosine at which two texts count as duplicates.",
)
@click.option("--keep", type=click.Choice(KEEPS), default="first", help="Which of several duplicates to keep.")
@method_options
@click.option(
    "--report", metavar="FILE", help="Also write each removed text and the text it duplicates: .jsonl, .csv or .tsv."
)
@csv_safe_option
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def dedup(
    *,
    source: TextSource,
    model: ModelChoice,
    prompt: PromptChoice,
    out: str,
    threshold: float,
    keep: Keep,
    method: MethodChoice,
    report: str | None,
    csv_safe: bool,
    force: bool,
) -> None:
    """Write the rows of FILE (default: '-', standard input) without near-duplicates.

    FILE has the formats of twinvec embed; all its columns are kept. The extension of the output sets its format; '-'
    is standard output in the format of FILE. A text is removed if its cosine with a kept text reaches the threshold,
    so no two texts of the output reach it, and every removed text has a near-duplicate in the output. With an index,
    a few duplicates may be missed. Rows are counted from 0.
    """
    import twinvec
    from twinvec.data.read import read_text_rows
    from twinvec.data.write import check_rows_target, write_rows

    if report is not None:
        check_rows_target(report, REPORT_COLUMNS, replace=force)
    rows = read_text_rows(source.file, source.column, format=source.format)
    format = rows.format if out == STDOUT else None
    check_rows_target(out, rows.columns, format=format, replace=force)
    found = twinvec.find_duplicates(
        rows.texts, threshold, model=model.embedder(prompt), keep=keep, **asdict(method), tell=say
    )
    kept = (rows.values[row] for row in found.kept.tolist())
    write_rows(kept, rows.columns, out, format=format, replace=force, csv_safe=csv_safe)
    if report is not None:
        write_rows(report_rows(found, rows.texts), REPORT_COLUMNS, report, replace=force, csv_safe=csv_safe)
    say(f"Kept {len(found.kept):,} of {len(rows.texts):,} texts; {len(found.removed):,} duplicates removed.")
    if out != STDOUT and sys.stdout.isatty():
        print_groups(found, rows.texts)


def report_rows(found: Duplicates, texts: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """A row for each removed text."""
    for row, kept, score in zip(*(part.tolist() for part in found[1:]), strict=True):
        yield row, texts[row], kept, texts[kept], round(score, 6)


def print_groups(found: Duplicates, texts: Sequence[str]) -> None:
    """Print the texts with the most duplicates, and the first of these."""
    table = plain_table("duplicates", f"texts with the most duplicates (of {len(set(found.repeated.tolist())):,})")
    for row, count in Counter(found.repeated.tolist()).most_common(N_SHOWN):
        copies = {texts[other] for other in found.removed[found.repeated == row].tolist()} - {texts[row]}
        lines = [texts[row], *(f"  {text}" for text in sorted(copies)[:2]), *["  ..."] * (len(copies) > 2)]
        table.add_row(f"{count:,}", "\n".join(lines))
    open_console().print(table)
