"""What users see: tables, times, training progress, one-line errors, interrupts without a traceback."""

from __future__ import annotations

import errno
import json
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from twinvec.errors import TwinvecError
from twinvec.progress import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from twinvec.training import DevReport, Finished, SeedsFinished, SeedStarted, Started, StepReport, TrainEvent

__all__ = [
    "CleanErrors",
    "SoftStop",
    "TrainingScreen",
    "fact_table",
    "if_interrupted",
    "open_console",
    "plain_table",
    "print_json",
    "say",
    "show_seconds",
    "show_version",
    "wants_json",
]

INTERRUPTED = 130  # 128 + SIGINT, as in shells
ON_INTERRUPT = "twinvec.on_interrupt"


def if_interrupted(message: str) -> None:
    """Set the message shown after "Interrupted." if the user presses Ctrl-C from now on."""
    click.get_current_context().meta[ON_INTERRUPT] = message


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn the errors of a command into click's errors and exit codes, with control characters made visible."""
    try:
        yield
    except TwinvecError as error:
        raise click.ClickException(visible(str(error))) from error
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]  # final for type checkers only
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        named = f"{error.filename!s:.200}: " if error.filename is not None else ""
        raise click.ClickException(visible(f"{named}{error.strerror or error}.")) from error
    except KeyboardInterrupt:
        context = click.get_current_context(silent=True)
        message = context.meta.get(ON_INTERRUPT, "") if context is not None else ""
        say(f"Interrupted. {message}".rstrip())
        raise click.exceptions.Exit(INTERRUPTED) from None


class VisibleFormatter(logging.Formatter):
    """Formats warnings with control characters made visible."""

    def format(self, record: logging.LogRecord) -> str:
        """The formatted warning."""
        return visible(super().format(record))


class CleanErrors(click.Group):
    """A group that shows Twinvec's errors as one line on standard error; bugs keep their traceback.

    click handles a broken pipe on standard output (``twinvec embed ... | head``): the command exits silently.
    """

    def invoke(self, ctx: click.Context) -> object:
        """Run the command and turn errors into exit codes."""
        if logging.lastResort is not None:  # the handler that prints the library's warnings
            logging.lastResort.setFormatter(VisibleFormatter())
        with clean_errors():
            return super().invoke(ctx)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's own arguments
        """Parse the arguments and turn errors into exit codes."""
        with clean_errors():
            return super().make_context(*args, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they were added."""
        return list(self.commands)


def show_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    """A click callback that prints the version of the installed package and exits."""
    if not requested or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"twinvec {version('twinvec')}")
    except PackageNotFoundError:
        click.echo("twinvec (not installed as a package)")
    ctx.exit()


MAX_WIDTH = 100  # columns; longer lines are hard to read. Also the width of output to a file or a pipe


def open_console(*, stderr: bool = False) -> Console:
    """A console for tables that prints texts literally: no markup, no emoji codes, no highlighting.

    Control characters are made visible.
    """
    from rich.console import Console
    from rich.text import Text

    class TextConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - rich's own options
            return super().render_str(visible(text), **options)

    console = TextConsole(markup=False, emoji=False, highlight=False, stderr=stderr)
    stream = sys.stderr if stderr else sys.stdout
    console.width = min(console.width, MAX_WIDTH) if stream.isatty() else MAX_WIDTH
    return console


def plain_table(*columns: str, n_left: int | None = None) -> Table:
    """A table with a line under its header and no other border.

    The first ``n_left`` columns are left-aligned, the others right-aligned; default: all are left-aligned.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if n_left is None or position < n_left else "right")
    return table


def fact_table(facts: Iterable[tuple[str, str]]) -> Table:
    """A table of labels in bold and their values, without a header."""
    table = plain_table("", "")
    table.show_header = False
    table.columns[0].style = "bold"
    for label, value in facts:
        table.add_row(label, value)
    return table


def say(message: str) -> None:
    """Print a message to standard error."""
    click.echo(visible(message), err=True)


def print_json(value: object, *, indent: int | None = None) -> None:
    """Print a value as JSON to standard output; on a terminal, with all control characters escaped."""
    line = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    click.echo(visible(line) if sys.stdout.isatty() else line)


def wants_json(*, as_json: bool) -> bool:
    """Whether to print JSON lines: on request, and into a file or a pipe."""
    return as_json or not sys.stdout.isatty()


def show_seconds(seconds: float) -> str:
    """A duration for people, with three digits.

    >>> show_seconds(0.01234), show_seconds(12.345), show_seconds(75)
    ('12.3 ms', '12.3 s', '1 min 15 s')
    """
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


N_SMOOTHED = 100  # steps to average the displayed loss and speed over
QUIET_S = 60.0  # between progress lines when there is no terminal


class SoftStop:
    """Stops after the current step at the first Ctrl-C or SIGTERM, and immediately at a second Ctrl-C."""

    def __init__(self) -> None:
        self._is_requested = False

    def __call__(self) -> bool:
        """Whether a stop was requested. The first call installs the signal handlers."""
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._note)
        return self._is_requested

    def _note(self, number: int, _: FrameType | None) -> None:
        self._is_requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say("Stopping after this step (press Ctrl-C again to stop now). Run the same command again to continue.")

    def restore(self) -> None:
        """Restore the default signal handlers."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class TrainingScreen:
    """Shows a progress bar on a terminal, occasional lines elsewhere; only the result goes to standard output."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._recent: deque[StepReport] = deque(maxlen=N_SMOOTHED)
        self._n_steps = 0
        self._best = ""
        self._said = time.monotonic()

    def __enter__(self) -> TrainingScreen:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def show(self, event: TrainEvent) -> None:
        """Show an event of the training."""
        handlers: dict[str, Callable[[Any], None]] = {
            "SeedStarted": self.seed,
            "Started": self.start,
            "StepReport": self.step,
            "DevReport": self.dev_score,
            "Finished": self.finish,
            "SeedsFinished": print_seeds,
        }
        handlers[type(event).__name__](event)

    def seed(self, event: SeedStarted) -> None:
        """Say which seed is trained."""
        say(f"Seed {event.seed}: {'trained before' if event.is_done else 'training'}.")

    def start(self, event: Started) -> None:
        """Describe the data and open the progress bar."""
        say(f"{event.n_rows:,} examples, {event.n_texts:,} distinct texts, {event.n_steps:,} steps.")
        if not event.is_packed:
            say("This architecture runs with padding, so it is slower than BERT and its relatives.")
        if event.first is not None:
            say(f"Before training: {event.first.value:.2f} on {event.first.data} ({event.first.protocol}).")
        if event.step:
            say(f"Resuming after step {event.step:,}.")
        self._n_steps = event.n_steps
        self._recent.clear()
        self._best = ""
        if sys.stderr.isatty():
            self._open(event.step)

    def step(self, report: StepReport) -> None:
        """Show the mean loss of the last steps, the learning rate and the speed."""
        self._recent.append(report)
        loss = sum(each.loss for each in self._recent) / len(self._recent)
        speed = sum(each.n_rows for each in self._recent) / sum(each.seconds for each in self._recent)
        text = f"loss {loss:.4f}  rate {report.rate:.2e}  {speed:,.0f} pairs/s{self._best}"
        if self._bar is not None:
            self._bar.update(self._task, completed=report.step, state=text)
        elif time.monotonic() - self._said > QUIET_S:
            left = (self._n_steps - report.step) * sum(each.seconds for each in self._recent) / len(self._recent)
            say(f"step {report.step:,} of {self._n_steps:,}  {text}  {show_seconds(left)} left")
            self._said = time.monotonic()

    def dev_score(self, report: DevReport) -> None:
        """Show a dev score."""
        line = f"step {report.step:,}: dev {report.score:.2f}{' (best so far)' if report.is_best else ''}"
        if self._bar is None:
            say(line)
        else:
            self._bar.console.print(line)
        if report.is_best:
            self._best = f"  best dev {report.score:.2f}"

    def finish(self, event: Finished) -> None:
        """Print the scores."""
        self._close()
        if event.scores:
            table = plain_table("data", "score", "", n_left=2)
            for score in event.scores:
                table.add_row(score.data, score.protocol, f"{score.value:.2f}")
            open_console().print(table)
        say(f"Trained in {show_seconds(event.seconds)}; the saved weights are from step {event.step:,}.")
        say(f"The model is in {event.folder}; training/curve.png in it shows the learning curve.")

    def _open(self, step: int) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("training"),
            progress.BarColumn(bar_width=24),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[state]}", markup=False),
            progress.TimeRemainingColumn(),
            console=open_console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=self._n_steps, completed=step, state="")
        self._bar.start()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def print_seeds(event: SeedsFinished) -> None:
    """Print the scores over all seeds."""
    table = plain_table("data", "score", f"mean of {len(event.seeds)}", "deviation", "best", n_left=2)
    for each in event.spreads:
        table.add_row(each.data, each.protocol, f"{each.mean:.2f}", f"{each.deviation:.2f}", f"{each.best:.2f}")
    open_console().print(table)
    say(f"The model of seed {event.best_seed} is in {event.folder}; all models are in {event.folder}.seeds.")
