"""``twinvec evaluate``: how good vectors are, on the tasks of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.cli.evaluate_options import (
    EngineChoice,
    SubjectGiven,
    SuiteChoice,
    engine_options,
    subject_options,
    suite_options,
)
from twinvec.cli.options import Decorator, gathered
from twinvec.cli.screen import open_console, plain_table, say

if TYPE_CHECKING:
    from twinvec.evaluate.result import Evaluation

__all__ = ["evaluate"]


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """Which files to write."""

    json_file: Path | None
    html_file: Path | None
    markdown_file: Path | None
    force: bool

    def check(self) -> None:
        """Refuse, before any work is done, what could not be written."""
        from twinvec.tables import check_target

        for file in (self.json_file, self.html_file, self.markdown_file):
            if file is not None:
                check_target(file, replace=self.force)

    def write(self, evaluation: Evaluation) -> None:
        """Write the files that were asked for."""
        from twinvec.evaluate.result_file import write_evaluation
        from twinvec.report import as_html, as_markdown
        from twinvec.tables import new_file

        if self.json_file is not None:
            write_evaluation(evaluation, self.json_file, replace=self.force)
        for file, render in ((self.html_file, as_html), (self.markdown_file, as_markdown)):
            if file is not None:
                with new_file(file, replace=self.force) as stream:
                    stream.write(render(evaluation).encode())
        written = [str(file) for file in (self.json_file, self.html_file, self.markdown_file) if file is not None]
        if written:
            say(f"Wrote {', '.join(written)}.")


def _file(option: str, name: str, what: str) -> Decorator:
    kind = click.Path(path_type=Path, dir_okay=False)
    decorator: Decorator = click.option(option, name, metavar="FILE", type=kind, help=what)
    return decorator


REPORT_OPTIONS: dict[str, Decorator] = {
    "json_file": _file("--json", "json_file", "Write all results with every item's prediction, for twinvec compare."),
    "html_file": _file("--html", "html_file", "Write a page with plots that needs no other file."),
    "markdown_file": _file("--markdown", "markdown_file", "Write the tables as Markdown."),
    "force": click.option("--force", is_flag=True, help="Replace files that exist."),
}
report_options = gathered(REPORT_OPTIONS, "report", build=ReportChoice)


@click.command(short_help="Judge a model, a server, a program or a file of vectors.")
@click.argument("model", required=False)
@suite_options
@report_options
@subject_options
@engine_options
def evaluate(
    *, model: str | None, suite: SuiteChoice, report: ReportChoice, given: SubjectGiven, engine: EngineChoice
) -> None:
    """Judge MODEL on tasks of the papers, with confidence intervals; every number names its protocol.

    MODEL is a folder, a name, or a server's https://host/v1#model-name; without it, and with nothing else to judge,
    the model of TWINVEC_MODEL, or the one that comes with Twinvec. Each different text is embedded once and cached,
    so that a second evaluation takes seconds.
    """
    report.check()
    evaluation = suite.run(given.choice(model, engine))
    print_evaluation(evaluation)
    report.write(evaluation)


def print_evaluation(evaluation: Evaluation) -> None:
    """A table for each protocol, on standard output."""
    from twinvec.report import protocols, show_interval, show_value

    console = open_console()
    console.print(evaluation.subject, style="bold", soft_wrap=True)
    for protocol, results in protocols(evaluation).items():
        console.print()
        console.print(protocol, style="italic", soft_wrap=True)
        table = plain_table("task", "score", "95 % interval", "items")
        for column in table.columns[1:]:
            column.justify = "right"
        for result in results:
            table.add_row(result.task, show_value(result), show_interval(result), f"{result.n:,}")
        console.print(table)
        for result in results:
            if result.problem:
                console.print(f"{result.task}: {result.problem}", soft_wrap=True)
