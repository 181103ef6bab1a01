"""Evaluations and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinvec.evaluation.result_file import Evaluation, Result
from twinvec.report.html import facts, protocols, show_interval, show_value

__all__ = ["as_markdown", "cell", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """The lines of a table; the columns with the indices ``right`` are aligned to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('--:' if i in right else '---' for i in range(len(head)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def cell(text: str) -> str:
    """Text that cannot break a table."""
    return " ".join(text.split()).replace("|", "\\|")


def as_markdown(evaluation: Evaluation) -> str:
    """The whole report."""
    return "\n".join(_lines(evaluation)) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    yield f"# Evaluation of {cell(evaluation.system)}"
    yield ""
    yield from table(("", ""), [(f"**{label}**", cell(value)) for label, value in facts(evaluation)])
    for protocol, results in protocols(evaluation).items():
        yield ""
        yield f"## {protocol}"
        yield ""
        rows = [(cell(r.task), show_value(r), show_interval(r), f"{r.n:,}") for r in results]
        yield from table(("task", "score", "95 % interval", "items"), rows, right=(1, 2, 3))
        yield from _problems(results)
    with_subsets = [result for result in evaluation.results if len(result.subsets) > 1]
    if with_subsets:
        yield ""
        yield "## Subsets"
        yield ""
        parts = [
            (cell(result.task), cell(subset.name), show_value(subset), f"{subset.n:,}", cell(result.protocol))
            for result in with_subsets
            for subset in result.subsets
        ]
        yield from table(("task", "subset", "score", "items", "protocol"), parts, right=(2, 3))


def _problems(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.problem:
            yield ""
            yield f"{cell(result.task)}: {cell(result.problem)}"
