"""``twinvec evaluate``: evaluate a model on the tasks of the papers."""

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
    model_options,
    option_group,
    prompt_options,
)
from twinvec.cli.screen import if_interrupted, open_console, plain_table, say, show_seconds

if TYPE_CHECKING:
    from twinvec.evaluation.evaluate import TaskRun
    from twinvec.evaluation.result_file import Evaluation
    from twinvec.evaluation.systems import SystemChoice

__all__ = ["SuiteChoice", "evaluate", "suite_options", "system_model_options"]


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """What to evaluate instead of a model: a server, a command, or a file of vectors."""

    endpoint: str | None
    endpoint_model: str | None
    key_variable: str | None
    timeout_s: float
    command: str | None
    lines: str
    vectors: str | None
    texts: str | None

    def choice(self, model: str | None, settings: dict[str, Any]) -> SystemChoice:
        """The system for the library to open; the default model if none is given."""
        import twinvec

        if model is None and not (self.endpoint or self.command or self.vectors):
            model = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
        options: dict[str, Any] = asdict(self)  # click has checked the values
        return twinvec.SystemChoice(model=model, settings=settings, **options)


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """The tasks, their data, the protocol and the cache."""

    tasks: str
    data: Path | None
    correlation: str
    similarity: str
    subsets: str
    classifier: str
    seed: int
    rerank: str | None
    cache: Path | None
    no_cache: bool

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``twinvec.evaluate`` and ``twinvec.compare``; each score is printed to standard error."""
        import twinvec
        from twinvec.vector_store import cache_folder

        protocol: dict[str, Any] = {
            name: getattr(self, name) for name in ("correlation", "similarity", "subsets", "classifier")
        }
        folder = None if self.no_cache else self.cache or cache_folder()
        if folder is not None:
            if_interrupted(f"Vectors are cached in {folder}; run the same command again to continue.")
        settings = twinvec.SuiteSettings(**protocol, seed=self.seed)
        return {
            "tasks": self.tasks,
            "data": self.data,
            "settings": settings,
            "rerank": self.rerank,
            "cache": folder,
            "watch": _print_run,
        }


def _print_run(run: TaskRun) -> None:
    first = run.results[0]
    value = "undefined" if first.value is None else f"{first.value:.2f}"
    say(f"{run.name}: {value} ({first.protocol}), {show_seconds(run.seconds)}")


SYSTEM_OPTIONS: dict[str, Decorator] = {
    "endpoint": click.option(
        "--endpoint",
        metavar="URL",
        help="Evaluate the server at this address, such as http://127.0.0.1:8080 or https://host/v1.",
    ),
    "endpoint_model": click.option(
        "--endpoint-model", metavar="NAME", help="Name of the server's model. Default: the server's own default."
    ),
    "key_variable": click.option(
        "--api-key-variable",
        "key_variable",
        metavar="NAME",
        help="Environment variable that holds the server's API key. Default: TWINVEC_API_KEY, or OPENAI_API_KEY if "
        "that is not set.",
    ),
    "timeout_s": click.option(
        "--timeout",
        "timeout_s",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        help="How long to wait for a response of the server.",
    ),
    "command": click.option(
        "--command", help="Evaluate a program that reads one text per line and writes a JSON array of numbers for each."
    ),
    "lines": click.option(
        "--command-lines",
        "lines",
        type=click.Choice(COMMAND_LINES),
        default="json",
        help="What the program reads on each line: a JSON string, or the plain text.",
    ),
    "vectors": click.option(
        "--vectors", metavar="FILE.npy", help="Evaluate the vectors in this file; requires --texts."
    ),
    "texts": click.option("--texts", metavar="FILE", help="Texts of --vectors, one per row."),
}
SUITE_OPTIONS: dict[str, Decorator] = {
    "tasks": click.option(
        "--tasks",
        metavar="A,B,...",
        default="sts",
        help=f"Tasks or groups: {', '.join(TASK_GROUPS)}; or sts12, stsb, mr, ...",
    ),
    "data": click.option(
        "--data",
        type=click.Path(path_type=Path),
        envvar="TWINVEC_DATA",
        show_envvar=True,
        help="Folder with the data sets.",
    ),
    "correlation": click.option(
        "--correlation", type=click.Choice(CORRELATIONS), default="spearman", help="STS: correlation coefficient."
    ),
    "similarity": click.option(
        "--measure",
        "similarity",
        type=click.Choice(SIMILARITY_NAMES),
        default="cosine",
        help="STS: similarity measure of two vectors.",
    ),
    "subsets": click.option(
        "--subsets",
        type=click.Choice(AGGREGATIONS),
        default="all",
        help="STS: correlate all pairs together (as in SBERT and MTEB), or average over the subsets (as in SentEval).",
    ),
    "classifier": click.option(
        "--classifier",
        type=click.Choice(CLASSIFIERS),
        default="logreg",
        help="Transfer and probing: logistic regression (as in SBERT), or a small neural network (as in SBERT-WK).",
    ),
    "seed": click.option("--seed", type=int, default=0, help="Random seed of folds and initial weights."),
    "rerank": click.option(
        "--rerank",
        metavar="FOLDER",
        help="Retrieval: a cross-encoder that ranks the first 100 documents of each query again.",
    ),
    "cache": click.option(
        "--cache",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for cached vectors. Default: TWINVEC_CACHE, or the system's cache folder.",
    ),
    "no_cache": click.option("--no-cache", is_flag=True, help="Do not read or write the cache."),
}
system_model_options = model_options(without=("name",))
system_options = option_group(SYSTEM_OPTIONS, "system", build=SystemOptions)
suite_options = option_group(SUITE_OPTIONS, "suite", build=SuiteChoice)


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """The files to write."""

    json_file: Path | None
    html_file: Path | None
    markdown_file: Path | None
    force: bool

    def check(self) -> None:
        """Fail before any work is done if a file cannot be written."""
        from twinvec.files import check_target

        for file in (self.json_file, self.html_file, self.markdown_file):
            if file is not None:
                check_target(file, replace=self.force)

    def write(self, evaluation: Evaluation) -> None:
        """Write the requested files."""
        from twinvec.report import write_reports

        files = {"json": self.json_file, "html": self.html_file, "markdown": self.markdown_file}
        write_reports(evaluation, **files, replace=self.force)
        written = [str(file) for file in files.values() if file is not None]
        if written:
            say(f"Wrote {', '.join(written)}.")


def _file(option: str, help: str) -> Decorator:
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(f"--{option}", f"{option}_file", metavar="FILE", type=kind, help=help)


REPORT_OPTIONS: dict[str, Decorator] = {
    "json_file": _file("json", "Write all results and the prediction of every item, for twinvec compare."),
    "html_file": _file("html", "Write a self-contained HTML page with plots."),
    "markdown_file": _file("markdown", "Write the tables as Markdown."),
    "force": click.option("--force", is_flag=True, help="Overwrite existing files."),
}
report_options = option_group(REPORT_OPTIONS, "report", build=ReportChoice)


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
    system: SystemOptions,
    model: ModelChoice,
    prompt: PromptChoice,
) -> None:
    """Evaluate MODEL on the tasks of the papers, with a confidence interval and the protocol of every score.

    MODEL is a folder, a name, or a server, as in https://host/v1#model-name. Default: TWINVEC_MODEL, or the model that
    comes with Twinvec. Each distinct text is embedded once and cached, so a second evaluation takes seconds.

    MODEL can also be a cross-encoder or poly-encoder, for STS, pairs, triplets, and retrieval: there it ranks the first
    100 hits of the default model again.
    """
    import twinvec

    report.check()
    choice = system.choice(name, {**model.arguments(), **prompt.arguments()})
    evaluation = twinvec.evaluate(choice, **suite.arguments())
    print_evaluation(evaluation)
    report.write(evaluation)


def print_evaluation(evaluation: Evaluation) -> None:
    """Print a table for each protocol."""
    from twinvec.report import protocols, show_interval, show_value

    console = open_console()
    console.print(evaluation.system, style="bold", soft_wrap=True)
    for protocol, results in protocols(evaluation).items():
        console.print()
        console.print(protocol, style="italic", soft_wrap=True)
        table = plain_table("task", "score", "95 % interval", "items", n_left=1)
        for result in results:
            table.add_row(result.task, show_value(result), show_interval(result), f"{result.n:,}")
        console.print(table)
        for result in results:
            if result.problem:
                console.print(f"{result.task}: {result.problem}", soft_wrap=True)
