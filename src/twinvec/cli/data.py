"""``twinvec data``: check training data, download data sets, mine hard negatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.choices import EXAMPLE_KINDS, FORMATS
from twinvec.cli.options import (
    MODEL_OPTIONS,
    MODEL_VARIABLE,
    Columns,
    Decorator,
    ModelChoice,
    columns_option,
    csv_safe_option,
    json_option,
    model_options,
    option_group,
    out_option,
    split_labels,
)
from twinvec.cli.screen import CleanErrors, fact_table, open_console, plain_table, print_json, say
from twinvec.cli.train_options import score_range_option

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.data.check_report import DataReport, Finding, Scores, TokenLengths

__all__ = ["data", "get", "negatives"]


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """A file of examples and how to read it."""

    file: str
    kind: str | None
    columns: Columns
    format: str | None
    labels: tuple[str, ...] | None
    ignore_labels: tuple[str, ...]
    score_range: tuple[float, float]


EXAMPLE_OPTIONS: dict[str, Decorator] = {
    "file": click.argument("file"),
    "kind": click.option(
        "--kind", type=click.Choice(EXAMPLE_KINDS), help="Kind of examples. Default: guessed from the column names."
    ),
    "columns": columns_option,
    "format": click.option(
        "--format", type=click.Choice(FORMATS), help="Format of FILE. Default: from its extension; lines for '-'."
    ),
    "labels": click.option(
        "--labels", metavar="A,B,...", callback=split_labels, help="Allowed labels. Default: all that occur."
    ),
    "ignore_labels": click.option(
        "--ignore-label", "ignore_labels", metavar="LABEL", multiple=True, help="Skip rows with this label. Repeatable."
    ),
    "score_range": score_range_option,
}
example_options = option_group(EXAMPLE_OPTIONS, "choice", build=ExampleChoice)


@click.group(cls=CleanErrors)
def data() -> None:
    """Check, download and extend training data."""


@data.command(short_help="Describe a file of examples and report its problems.")
@example_options
@click.option(
    "--against",
    metavar="FILE",
    multiple=True,
    help="Evaluation file: count its texts that are also in FILE. Repeatable.",
)
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    envvar=MODEL_VARIABLE,
    show_envvar=True,
    help="Count tokens with the tokenizer of this model (folder or name). No weights are loaded.",
)
@MODEL_OPTIONS["offline"]
@json_option
@click.pass_context
def check(
    context: click.Context,
    *,
    choice: ExampleChoice,
    against: tuple[str, ...],
    model: str | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Describe a FILE of examples and report its problems.

    FILE is csv, tsv, jsonl or parquet (or plain lines, for texts), as its extension says; all but parquet may be
    gzipped. The kinds of examples and their columns: labelled_pairs (premise, hypothesis, label), scored_pairs (text1,
    text2, score), marked_pairs (text1, text2, and a label that is 0 or 1), triplets (anchor, positive, negative),
    scored_triplets (triplets with a margin), ranked (anchor, positive, and any number of negatives), texts (text).

    The exit code is 1 if training would reject the file.
    """
    from twinvec.data.check import check_examples

    report = check_examples(**asdict(choice), against=against, model=model, offline=offline)
    if as_json:
        print_json(report.as_dict(), indent=2)
    else:
        print_report(report, is_guessed=choice.kind is None)
    context.exit(0 if report.is_usable else 1)


@data.command(short_help="Download public data sets for evaluation and training.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="TWINVEC_DATA",
    show_envvar=True,
    help="Folder to store them in.",
)
@click.option("--list", "is_list", is_flag=True, help="List the data sets and exit.")
@click.option("--force", is_flag=True, help="Download again and overwrite existing files.")
@click.option(
    "--from",
    "files_in",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Do not download; read the files from this folder, named as in their URLs.",
)
@click.option(
    "--sha256",
    "trusted",
    metavar="HEX",
    multiple=True,
    help="Checksum that you trust, for a file without a known one. Give one for each file of a single NAME.",
)
def get(
    *,
    names: tuple[str, ...],
    data: Path | None,
    is_list: bool,
    force: bool,
    files_in: Path | None,
    trusted: tuple[str, ...],
) -> None:
    """Download data sets from their publishers into the data folder.

    Each is downloaded once, verified if its checksum is known, and written as gzipped tables. After an interruption,
    run the same command again to continue. Check the licenses: most allow research only. Files without a known
    checksum are never downloaded over plain http.
    """
    from twinvec.data.download import get_data_sets
    from twinvec.data.sources import SOURCES
    from twinvec.errors import InputError

    if is_list:
        print_sources()
        return
    if not names:
        raise click.UsageError(f"No data set given. Choose from: {', '.join(SOURCES)}.")
    if data is None:
        raise InputError("No data folder given.", hint="Pass --data, or set TWINVEC_DATA.")
    if trusted and len(names) != 1:
        raise click.UsageError("--sha256 requires exactly one NAME.")
    get_data_sets(names, data, replace=force, files_in=files_in, trusted=trusted, tell=say)


def print_sources() -> None:
    """Print the data sets, their licenses, and whether a checksum is known."""
    from twinvec.data.sources import SOURCES

    table = plain_table("name", "description", "license", "checksum")
    for each in SOURCES.values():
        is_checked = all(download.sha256 for download in each.downloads)
        table.add_row(each.name, each.what, each.license, "sha256" if is_checked else "unknown")
    open_console().print(table)


@data.command(short_help="Find hard negatives for pairs, and write triplets to train on.")
@EXAMPLE_OPTIONS["file"]
@EXAMPLE_OPTIONS["columns"]
@EXAMPLE_OPTIONS["format"]
@model_options()
@out_option("FILE", "File for the triplets: .tsv, .csv, .jsonl or .parquet.", required=True)
@click.option(
    "--pool", metavar="FILE", help="File with more candidate texts. Default: only the positives are candidates."
)
@click.option("-n", type=click.IntRange(min=1), default=1, help="Negatives per pair.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.05,
    help="A negative's cosine must be lower than the positive's by this much; nearer texts may be correct answers.",
)
@click.option("--highest", type=float, help="Skip candidates with a higher cosine than this.")
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Skip this many of the hardest candidates.")
@click.option("--depth", type=click.IntRange(min=1), default=100, help="Candidates to consider per anchor.")
@csv_safe_option
@click.option("--force", is_flag=True, help="Overwrite the output if it exists.")
def negatives(
    *,
    file: str,
    columns: Columns,
    format: str | None,
    model: ModelChoice,
    out: str,
    pool: str | None,
    csv_safe: bool,
    force: bool,
    **choices: float,
) -> None:
    """Find hard negatives for the pairs of FILE (columns anchor and positive) and write triplets.

    A hard negative is a text whose cosine to the anchor is high, but lower than the positive's by a margin, and that
    is not itself a positive of the anchor (ignoring case and punctuation). twinvec train reads the triplets.
    """
    from twinvec.data.roles import DataSource
    from twinvec.search import NegativeSettings, mine_negatives

    mined = mine_negatives(
        DataSource(file, "ranked", columns, format),
        out,
        model.embedder(),
        pool=pool,
        settings=NegativeSettings(**choices),  # type: ignore[arg-type] # click has made ints of them
        replace=force,
        csv_safe=csv_safe,
    )
    say(f"Wrote {mined.n_triplets:,} triplets to {out}, for {mined.n_served:,} of {mined.n_pairs:,} distinct pairs.")


BAR_WIDTH = 40


def print_report(report: DataReport, *, is_guessed: bool) -> None:
    """Print everything to standard output; the verdict comes last, where it is seen."""
    console = open_console()
    block = "█" if console.encoding.lower().startswith("utf") else "#"
    console.print(report.file, style="bold", soft_wrap=True)
    for table in _tables(report, is_guessed=is_guessed, block=block):
        console.print()
        console.print(table)
    console.print()
    console.print(_verdict(report), style="green" if report.is_usable else "red")


def _tables(report: DataReport, *, is_guessed: bool, block: str) -> Iterator[Table]:
    yield fact_table(_facts(report, is_guessed=is_guessed))
    if report.labels and report.n_good:
        yield _bars("label", report.labels, block=block)
    if report.scores:
        yield _bars("score", _bins(report.scores), block=block)
    if report.contradictions:
        yield _contradictions(report)
    for overlap in report.overlaps:
        if overlap.shown:
            yield _samples(f"texts that are also in {overlap.file}", overlap.shown, n_all=overlap.n_shared)
    for fault in report.faults:
        shown = [problem.removeprefix(f"{report.file}, ") for problem in fault.shown]
        table = _samples(f"bad rows: {fault.name}", shown, n_all=fault.count)
        table.add_row(f"-> {fault.hint}")
        yield table


def _facts(report: DataReport, *, is_guessed: bool) -> Iterator[tuple[str, str]]:
    yield "kind", report.kind + " (guessed from the column names; override with --kind)" * is_guessed
    yield "columns", ", ".join(_column(role, names) for role, names in report.columns.items())
    parts = {"bad": report.n_bad, "skipped for their label": report.n_ignored}
    shown = [f"{count:,} {what}" for what, count in parts.items() if count]
    yield "rows", f"{report.n_rows:,}" + (f": {report.n_good:,} good, {', '.join(shown)}" if shown else "")
    yield "distinct texts", f"{report.n_texts:,}"
    if report.tokens:
        yield "tokens", _tokens(report.tokens)
    if report.scores:
        least, mean, highest = report.scores.least, report.scores.mean, report.scores.highest
        yield "scores", f"{least:g} to {highest:g}, {mean:.4g} on average"
    yield "repeated rows", _rows(report.duplicates, report.unit)
    if report.labels or report.scores:
        what = "label" if report.labels else "score"
        count = report.n_contradictions
        yield "contradictions", f"{count:,} pair{'s' * (count != 1)} with more than one {what}" if count else "none"
    if len(report.columns) > 1:
        yield "same text twice", _rows(report.equal_texts, report.unit)
    yield "empty texts", _rows(report.empty_texts, report.unit)
    for overlap in report.overlaps:
        shared = f"{overlap.n_shared:,} of its {overlap.n_texts:,} texts, in {overlap.n_rows:,} rows of this file"
        yield f"in {overlap.file}", shared if overlap.n_shared else f"none of its {overlap.n_texts:,} texts"


def _column(role: str, names: Sequence[str]) -> str:
    return role if list(names) == [role] else f"{role} = {' + '.join(names)}"


def _rows(finding: Finding, unit: str) -> str:
    if not finding.count:
        return "none"
    numbers = ", ".join(f"{number:,}" for number in finding.rows) + ", ..." * (finding.count > len(finding.rows))
    return f"{finding.count:,} ({unit}{'s' * (finding.count > 1)} {numbers})"


def _tokens(tokens: TokenLengths) -> str:
    cut = f"{tokens.n_cut:,} texts are" if tokens.n_cut > 1 else f"{'one' if tokens.n_cut else 'no'} text is"
    return (
        f"{tokens.mean:.3g} on average, at most {tokens.percentile_95:,} in 95 % of the texts, {tokens.longest:,} in "
        f"the longest; {cut} cut at {tokens.limit:,}"
    )


def _bins(scores: Scores) -> dict[str, int]:
    step = (scores.high - scores.low) / len(scores.counts)
    ends = [f"{scores.low + i * step:.3g}" for i in range(len(scores.counts) + 1)]
    return {f"{ends[i]} to {ends[i + 1]}": count for i, count in enumerate(scores.counts)}


def _bars(head: str, counts: dict[str, int], *, block: str) -> Table:
    table = plain_table(head, "rows", "share", "", n_left=1)
    table.columns[3].justify = "left"
    total, longest = max(sum(counts.values()), 1), max(*counts.values(), 1)
    for name, count in counts.items():
        table.add_row(name, f"{count:,}", f"{100 * count / total:.1f} %", block * round(BAR_WIDTH * count / longest))
    return table


def _contradictions(report: DataReport) -> Table:
    what = "labels" if report.labels else "scores"
    table = plain_table(f"{report.unit}s", what, f"the same texts with different {what}")
    for each in report.contradictions:
        cells = [f"{row:,}" for row in each.rows], each.targets, each.texts
        table.add_row(*("\n".join(cell) for cell in cells), end_section=True)
    return _and_more(table, report.n_contradictions - len(report.contradictions))


def _samples(head: str, lines: Sequence[str], *, n_all: int) -> Table:
    table = plain_table(f"{head} ({n_all:,})")
    for line in lines:
        table.add_row(line)
    return _and_more(table, n_all - len(lines))


def _and_more(table: Table, count: int) -> Table:
    if count > 0:
        table.add_row(*[""] * (len(table.columns) - 1), f"... and {count:,} more")
    return table


def _verdict(report: DataReport) -> str:
    if report.is_usable:
        return f"Training would accept this file, with {report.n_good:,} examples."
    bad = f"{report.n_bad:,} of its {report.n_rows:,} rows are bad." if report.faults else ""
    return f"Training would reject this file: {bad} {report.refusal}".replace("  ", " ").strip()
