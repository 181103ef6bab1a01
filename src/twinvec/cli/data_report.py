"""What ``twinvec data check`` prints: facts, labels or scores, samples of what to look at, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from twinvec.cli.screen import open_console, plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.data.check_report import DataReport, Finding, Scores, TokenLengths

__all__ = ["print_report"]

BAR_WIDTH = 40


def print_report(report: DataReport, *, is_guessed: bool) -> None:
    """Print everything to standard output; what training would refuse comes last, where it is seen."""
    console = open_console()
    block = "█" if console.encoding.lower().startswith("utf") else "#"
    console.print(report.file, style="bold", soft_wrap=True)
    for table in _tables(report, is_guessed=is_guessed, block=block):
        console.print()
        console.print(table)
    console.print()
    console.print(_verdict(report), style="green" if report.is_usable else "red")


def _tables(report: DataReport, *, is_guessed: bool, block: str) -> Iterator[Table]:
    facts = plain_table("", "")
    facts.show_header = False
    facts.columns[0].style = "bold"
    for label, value in _facts(report, is_guessed=is_guessed):
        facts.add_row(label, value)
    yield facts
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
    yield "kind", report.kind + " (guessed from the names of the columns; --kind says otherwise)" * is_guessed
    yield "columns", ", ".join(_column(role, names) for role, names in report.columns.items())
    parts = {"bad": report.n_bad, "left out for their label": report.n_ignored}
    shown = [f"{count:,} {what}" for what, count in parts.items() if count]
    yield "rows", f"{report.n_rows:,}" + (f": {report.n_good:,} good, {', '.join(shown)}" if shown else "")
    yield "different texts", f"{report.n_texts:,}"
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
    """How many rows, and where the first stand."""
    if not finding.count:
        return "none"
    places = ", ".join(f"{number:,}" for number in finding.rows) + ", ..." * (finding.count > len(finding.rows))
    return f"{finding.count:,} ({unit}{'s' * (finding.count > 1)} {places})"


def _tokens(tokens: TokenLengths) -> str:
    cut = f"{tokens.n_cut:,} texts are" if tokens.n_cut > 1 else f"{'one' if tokens.n_cut else 'no'} text is"
    return (
        f"{tokens.mean:.3g} on average, at most {tokens.percentile_95:,} in 95 % of the texts, {tokens.longest:,} in "
        f"the longest; {cut} cut at {tokens.limit:,}"
    )


def _bins(scores: Scores) -> dict[str, int]:
    step = (scores.high - scores.low) / len(scores.counts)
    ends = [f"{scores.low + place * step:.3g}" for place in range(len(scores.counts) + 1)]
    return {f"{ends[i]} to {ends[i + 1]}": count for i, count in enumerate(scores.counts)}


def _bars(head: str, counts: dict[str, int], *, block: str) -> Table:
    """Counts with their share, and a bar for each."""
    table = plain_table(head, "rows", "share", "")
    table.columns[1].justify = table.columns[2].justify = "right"
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
        return f"Training would take this file, with {report.n_good:,} examples."
    bad = f"{report.n_bad:,} of its {report.n_rows:,} rows are bad." if report.faults else ""
    return f"Training would refuse this file: {bad} {report.refusal}".replace("  ", " ").strip()
