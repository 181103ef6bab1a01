"""``twinvec evaluate``: score a model on the tasks of the papers."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.choices import (
    AGGREGATIONS,
    CLASSIFIERS,
    COMMAND_LINES,
    CORRELATIONS,
    DEFAULT_MODEL,
    SIMILARITY_NAMES,
    TASK_GROUPS,
)
from twinvec.cli.options import (
    MODEL_VARIABLE,
    Decorator,
    ModelChoice,
    PromptChoice,
    gathered,
    model_options,
    prompt_options,
)
from twinvec.cli.screen import if_interrupted, open_console, plain_table, say, show_seconds

if TYPE_CHECKING:
    from twinvec.evaluation.evaluate import TaskRun
    from twinvec.evaluation.result_file import Evaluation
    from twinvec.evaluation.systems import SystemChoice

__all__ = ["SuiteChoice", "evaluate", "suite_options", "system_model_options"]


@dataclass(frozen=True, slots=True)
class SystemGiven:
    """What is evaluated instead of a model: a server, a command, or vectors in a file."""

    endpoint: str | None
    endpoint_model: str | None
    key_variable: str
    timeout_s: float
    command: str | None
    lines: str
    vectors: str | None
    texts: str | None

    def choice(self, model: str | None, settings: dict[str, Any]) -> SystemChoice:
        """What the library needs to open it; if nothing was named, the default model."""
        import twinvec

        if model is None and not (self.endpoint or self.command or self.vectors):
            model = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
        given: dict[str, Any] = asdict(self)  # click has checked the words
        return twinvec.SystemChoice(model=model, settings=settings, **given)


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """Which tasks, from which data, under which protocol; and the cache."""

    tasks: str
    data: Path | None
    correlation: str
    similarity: str
    subsets: str
    classifier: str
    seed: int
    cache: Path | None
    no_cache: bool

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``twinvec.evaluate`` and ``twinvec.compare``; scores are told on standard error."""
        import twinvec
        from twinvec.vector_store import cache_folder

        words: dict[str, Any] = {
            name: getattr(self, name) for name in ("correlation", "similarity", "subsets", "classifier")
        }
        folder = None if self.no_cache else self.cache or cache_folder()
        if folder is not None:
            if_interrupted(f"vectors are kept in {folder}, and the same command goes on from there.")
        settings = twinvec.SuiteSettings(**words, seed=self.seed)
        return {"tasks": self.tasks, "data": self.data, "settings": settings, "cache": folder, "watch": _tell}


def _tell(run: TaskRun) -> None:
    first = run.results[0]
    shown = "undefined" if first.value is None else f"{first.value:.2f}"
    say(f"{run.name}: {shown} ({first.protocol}), {show_seconds(run.seconds)}")


SYSTEM_OPTIONS: dict[str, Decorator] = {
    "endpoint": click.option(
        "--endpoint", metavar="URL", help="Evaluate the server at this address, by its /v1/embeddings."
    ),
    "endpoint_model": click.option("--endpoint-model", metavar="NAME", help="The server's model."),
    "key_variable": click.option(
        "--api-key-variable",
        "key_variable",
        metavar="NAME",
        default="OPENAI_API_KEY",
        show_default=True,
        help="Environment variable that holds the server's key.",
    ),
    "timeout_s": click.option(
        "--timeout",
        "timeout_s",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="How long to wait for an answer of the server.",
    ),
    "command": click.option(
        "--command", help="Evaluate a program: it reads a text per line, and writes a JSON array of numbers for each."
    ),
    "lines": click.option(
        "--command-lines",
        "lines",
        type=click.Choice(COMMAND_LINES),
        default="json",
        show_default=True,
        help="What the program reads on each line: a JSON string, or the text as it is.",
    ),
    "vectors": click.option("--vectors", metavar="FILE.npy", help="Evaluate the vectors of a file, with --texts."),
    "texts": click.option("--texts", metavar="FILE", help="The texts of --vectors, row by row."),
}
SUITE_OPTIONS: dict[str, Decorator] = {
    "tasks": click.option(
        "--tasks",
        metavar="A,B,...",
        default="sts",
        show_default=True,
        help=f"Tasks or groups: {', '.join(TASK_GROUPS)}; or sts12, stsb, mr, ...",
    ),
    "data": click.option(
        "--data",
        type=click.Path(path_type=Path),
        envvar="TWINVEC_DATA",
        show_envvar=True,
        help="Folder of the data sets.",
    ),
    "correlation": click.option(
        "--correlation", type=click.Choice(CORRELATIONS), default="spearman", show_default=True, help="STS: which one."
    ),
    "similarity": click.option(
        "--measure",
        "similarity",
        type=click.Choice(SIMILARITY_NAMES),
        default="cosine",
        show_default=True,
        help="STS: similarity of two vectors.",
    ),
    "subsets": click.option(
        "--subsets",
        type=click.Choice(AGGREGATIONS),
        default="all",
        show_default=True,
        help="STS: all pairs together (as SBERT and MTEB), or a mean of the subsets' correlations (as SentEval).",
    ),
    "classifier": click.option(
        "--classifier",
        type=click.Choice(CLASSIFIERS),
        default="logreg",
        show_default=True,
        help="Transfer and probing: logistic regression (as SBERT), or a small network (as SBERT-WK).",
    ),
    "seed": click.option("--seed", type=int, default=0, show_default=True, help="Of folds and starts."),
    "cache": click.option(
        "--cache",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of cached vectors. Default: TWINVEC_CACHE, or the system's folder for caches.",
    ),
    "no_cache": click.option("--no-cache", is_flag=True, help="Neither read nor keep cached vectors."),
}
system_model_options = model_options(without=("name",))
system_options = gathered(SYSTEM_OPTIONS, "given", build=SystemGiven)
suite_options = gathered(SUITE_OPTIONS, "suite", build=SuiteChoice)


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """Which files to write."""

    json_file: Path | None
    html_file: Path | None
    markdown_file: Path | None
    force: bool

    def check(self) -> None:
        """Refuse, before any work is done, what could not be written."""
        from twinvec.files import check_target

        for file in (self.json_file, self.html_file, self.markdown_file):
            if file is not None:
                check_target(file, replace=self.force)

    def write(self, evaluation: Evaluation) -> None:
        """Write the files that were named."""
        from twinvec.report import write_reports

        files = {"json": self.json_file, "html": self.html_file, "markdown": self.markdown_file}
        write_reports(evaluation, **files, replace=self.force)
        written = [str(file) for file in files.values() if file is not None]
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


@click.command()
@click.argument("name", metavar="[MODEL]", required=False)
@suite_options
@report_options
@system_options
@system_model_options
@prompt_options
def evaluate(
    *,
    name: str | None,
    suite: SuiteChoice,
    report: ReportChoice,
    given: SystemGiven,
    model: ModelChoice,
    prompt: PromptChoice,
) -> None:
    """Evaluate MODEL on tasks of the papers, with confidence intervals; every number names its protocol.

    MODEL is a folder, a name, or a server's https://host/v1#model-name; without it, and with nothing else to evaluate,
    the model of TWINVEC_MODEL, or the one that comes with Twinvec. Each different text is embedded once and cached,
    so that a second evaluation takes seconds.
    """
    import twinvec

    report.check()
    system = given.choice(name, {**model.arguments(), **prompt.arguments()})
    evaluation = twinvec.evaluate(system, **suite.arguments())
    print_evaluation(evaluation)
    report.write(evaluation)


def print_evaluation(evaluation: Evaluation) -> None:
    """A table for each protocol, on standard output."""
    from twinvec.report import protocols, show_interval, show_value

    console = open_console()
    console.print(evaluation.system, style="bold", soft_wrap=True)
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
