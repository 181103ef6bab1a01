"""Evaluations and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinvec.evaluation.result_file import Evaluation
from twinvec.report.html import facts, protocols, show_interval, show_value

__all__ = ["as_markdown", "cell", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """Yield the lines of a table; the column indices in ``right`` are right-aligned."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('--:' if i in right else '---' for i in range(len(head)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def cell(text: str) -> str:
    """Escape text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def as_markdown(evaluation: Evaluation) -> str:
    """The Markdown report of an evaluation."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    yield from (f"# Evaluation of {cell(evaluation.system)}", "")
    yield from table(("", ""), [(f"**{label}**", cell(value)) for label, value in facts(evaluation)])
    for protocol, results in protocols(evaluation).items():
        yield from ("", f"## {protocol}", "")
        rows = [(cell(r.task), show_value(r), show_interval(r), f"{r.n:,}") for r in results]
        yield from table(("task", "score", "95 % interval", "items"), rows, right=(1, 2, 3))
        for result in results:
            if result.problem:
                yield from ("", f"{cell(result.task)}: {cell(result.problem)}")
    with_subsets = [result for result in evaluation.results if len(result.subsets) > 1]
    if with_subsets:
        yield from ("", "## Subsets", "")
        parts = [
            (cell(result.task), cell(subset.name), show_value(subset), f"{subset.n:,}", cell(result.protocol))
            for result in with_subsets
            for subset in result.subsets
        ]
        yield from table(("task", "subset", "score", "items", "protocol"), parts, right=(2, 3))
