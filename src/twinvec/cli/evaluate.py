"""``twinvec evaluate``: score a model on the tasks of the papers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.choices import DEFAULT_MODEL, SIMILARITY_NAMES
from twinvec.cli.options import MODEL_OPTIONS, MODEL_VARIABLE, PROMPT_OPTIONS, Decorator, gathered
from twinvec.cli.screen import if_interrupted, open_console, plain_table, say, show_seconds

if TYPE_CHECKING:
    from twinvec.evaluation.result_file import Evaluation
    from twinvec.evaluation.suite import TaskRun
    from twinvec.evaluation.systems import SystemChoice

__all__ = [
    "EngineChoice",
    "SuiteChoice",
    "SystemGiven",
    "engine_options",
    "evaluate",
    "suite_options",
    "system_options",
]

CLASSIFIERS = ("logreg", "mlp")
CORRELATIONS = ("spearman", "pearson")
SUBSETS = ("all", "mean", "weighted mean")
LINES = ("json", "plain")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """How a model runs, if what is judged is a model."""

    precision: str
    threads: int | None
    device: str
    runtime: str
    deterministic: bool
    long: str
    truncate_dim: int | None
    readout: str | None
    trust_pickle: bool
    offline: bool
    prompt: str | None
    prompt_name: str | None

    def settings(self) -> dict[str, Any]:
        """What was set, by name."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True)
class SystemGiven:
    """What is judged instead of a model: a server, a command, or vectors in a file."""

    endpoint: str | None
    endpoint_model: str | None
    key_variable: str
    timeout_s: float
    command: str | None
    lines: str
    vectors: str | None
    texts: str | None

    def choice(self, model: str | None, engine: EngineChoice) -> SystemChoice:
        """What the library needs to open it; if nothing was named, the usual model."""
        from twinvec.evaluation.systems import SystemChoice

        if model is None and not (self.endpoint or self.command or self.vectors):
            model = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
        given: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}  # click has checked the words
        return SystemChoice(model=model, settings=engine.settings(), **given)


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """Which tasks, from which data, under which protocol; and the cache."""

    tasks: tuple[str, ...]
    data: Path | None
    correlation: str
    similarity: str
    subsets: str
    classifier: str
    seed: int
    cache: Path | None
    no_cache: bool

    def run(self, choice: SystemChoice) -> Evaluation:
        """Judge, saying on standard error what is done."""
        from twinvec.embedder import TEXTS_PER_CALL, CachedEmbedder
        from twinvec.errors import InputError
        from twinvec.evaluation.suite import SuiteSettings, evaluation_of, load_tasks, run_suite, task_names
        from twinvec.evaluation.systems import open_system
        from twinvec.vector_store import cache_folder

        names = task_names(self.tasks)
        if self.data is None:
            raise InputError("No data folder was given.", hint="Name it with --data, or set TWINVEC_DATA.")
        tasks = load_tasks(names, self.data)
        system = open_system(choice)
        words: dict[str, Any] = {name: getattr(self, name) for name in ("correlation", "similarity", "subsets")}
        settings = SuiteSettings(**words, classifier=self.classifier, seed=self.seed)
        folder = None if self.no_cache else self.cache or cache_folder()
        if folder is not None:
            if_interrupted(f"vectors are kept in {folder}, and the same command goes on from there.")
        cached = CachedEmbedder(system, folder, at_once=None if choice.command else TEXTS_PER_CALL)
        return evaluation_of(system, _told(run_suite(tasks, cached.embed, settings)))


def _told(runs: Iterator[TaskRun]) -> Iterator[TaskRun]:
    for run in runs:
        first = run.results[0]
        shown = "undefined" if first.value is None else f"{first.value:.2f}"
        say(f"{run.name}: {shown} ({first.protocol}), {show_seconds(run.seconds)}")
        yield run


def _names(_: click.Context, __: click.Parameter, given: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in given.split(",") if name.strip())


ENGINE_OPTIONS: dict[str, Decorator] = {
    name: {**MODEL_OPTIONS, **PROMPT_OPTIONS}[name] for name in EngineChoice.__slots__
}
SYSTEM_OPTIONS: dict[str, Decorator] = {
    "endpoint": click.option(
        "--endpoint", metavar="URL", help="Judge the server at this address, by its /v1/embeddings."
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
        "--command", help="Judge a program: it reads a text per line, and writes a JSON array of numbers for each."
    ),
    "lines": click.option(
        "--command-lines",
        "lines",
        type=click.Choice(LINES),
        default="json",
        show_default=True,
        help="What the program reads on each line: a JSON string, or the text as it is.",
    ),
    "vectors": click.option("--vectors", metavar="FILE.npy", help="Judge the vectors of a file, with --texts."),
    "texts": click.option("--texts", metavar="FILE", help="The texts of --vectors, row by row."),
}
SUITE_OPTIONS: dict[str, Decorator] = {
    "tasks": click.option(
        "--tasks",
        metavar="A,B,...",
        default="sts",
        show_default=True,
        callback=_names,
        help="Tasks or groups: sts, transfer, relatedness, probing, pairs, argument, retrieval, clustering, triplets, "
        "korean; or sts12, stsb, mr, ...",
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
        type=click.Choice(SUBSETS),
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
engine_options = gathered(ENGINE_OPTIONS, "engine", build=EngineChoice)
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
        """Write the files that were asked for."""
        from twinvec.evaluation.result_file import write_evaluation
        from twinvec.files import new_file
        from twinvec.report import as_html, as_markdown

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


@click.command()
@click.argument("model", required=False)
@suite_options
@report_options
@system_options
@engine_options
def evaluate(
    *, model: str | None, suite: SuiteChoice, report: ReportChoice, given: SystemGiven, engine: EngineChoice
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
