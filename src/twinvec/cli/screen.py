"""What people see: tables, times, training runs, errors as one line, interrupts without a traceback."""

from __future__ import annotations

import errno
import json
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
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
    "if_interrupted",
    "open_console",
    "plain_table",
    "print_json",
    "say",
    "show_seconds",
    "show_version",
]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
KEPT = "twinvec.kept"


def if_interrupted(kept: str) -> None:
    """Say what an interrupt from here on leaves behind: half a sentence, after "Interrupted;"."""
    click.get_current_context().meta[KEPT] = kept


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn what a command raises into click's errors and exit codes, whatever it quotes made visible."""
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
        kept = context.meta.get(KEPT) if context is not None else None
        click.echo(visible(f"Interrupted; {kept}" if kept else "Interrupted."), err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


class VisibleFormatter(logging.Formatter):
    """Warnings as lines, with control characters made visible."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a warning."""
        return visible(super().format(record))


class CleanErrors(click.Group):
    """Show our own errors as one line on standard error; let real bugs show their traceback.

    A broken pipe on standard output (``twinvec embed ... | head``) ends in silence: click sees to that.
    """

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, turning errors into exit codes."""
        if logging.lastResort is not None:  # what shows the library's warnings
            logging.lastResort.setFormatter(VisibleFormatter())
        with clean_errors():
            return super().invoke(ctx)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - as click has them
        """Read the arguments, with the same care."""
        with clean_errors():
            return super().make_context(*args, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they were added, the first to try first."""
        return list(self.commands)


def show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version of the installed package, and stop."""
    if not asked or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"twinvec {version('twinvec')}")
    except PackageNotFoundError:
        click.echo("twinvec, not installed as a package")
    ctx.exit()


MAX_WIDTH = 100  # longer lines are hard to read; also that of output to a file or a pipe


def open_console(*, stderr: bool = False) -> Console:
    """Standard output for tables. Texts are shown as they are: no markup, no emoji codes, no coloring.

    Control characters in them are made visible.
    """
    from rich.console import Console
    from rich.text import Text

    class TextConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - as rich has them
            return super().render_str(visible(text), **options)

    console = TextConsole(markup=False, emoji=False, highlight=False, stderr=stderr)
    stream = sys.stderr if stderr else sys.stdout
    console.width = min(console.width, MAX_WIDTH) if stream.isatty() else MAX_WIDTH
    return console


def plain_table(*columns: str) -> Table:
    """A table with a line under its head and no other border."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def say(message: str) -> None:
    """A line for the person who waits, on standard error."""
    import click

    click.echo(visible(message), err=True)


def print_json(value: object, *, indent: int | None = None) -> None:
    """A value as JSON on standard output; a terminal gets the same value with all control characters escaped."""
    import click

    line = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    click.echo(visible(line) if sys.stdout.isatty() else line)


def show_seconds(seconds: float) -> str:
    """A time in three digits.

    >>> show_seconds(0.01234), show_seconds(12.345), show_seconds(75)
    ('12.3 ms', '12.3 s', '1 min 15 s')
    """
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


N_SMOOTHED = 100  # steps whose mean loss and speed are shown
QUIET_S = 60.0  # between lines where there is no terminal


class SoftStop:
    """The first Ctrl-C, or request to end, waits for the step to be over; a second Ctrl-C does not."""

    def __init__(self) -> None:
        self._is_asked = False

    def __call__(self) -> bool:
        """Whether a stop was asked for. From the first question on, requests wait for the next."""
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._note)
        return self._is_asked

    def _note(self, number: int, _: FrameType | None) -> None:
        self._is_asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say("Stopping after this step (again to stop at once); the same command goes on from here.")

    def restore(self) -> None:
        """Give back the usual handlers."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class TrainingScreen:
    """A bar on a terminal; lines now and then elsewhere. All on standard error, but for the result."""

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
        """Show what happened."""
        shown: dict[str, Callable[[Any], None]] = {
            "SeedStarted": self.seed,
            "Started": self.start,
            "StepReport": self.step,
            "DevReport": self.dev_score,
            "Finished": self.finish,
            "SeedsFinished": print_seeds,
        }
        shown[type(event).__name__](event)

    def seed(self, event: SeedStarted) -> None:
        """Say which seed's turn it is."""
        say(f"Seed {event.seed}: {'trained before' if event.is_done else 'training'}.")

    def start(self, event: Started) -> None:
        """Say what is trained on, and open the bar."""
        say(f"{event.n_rows:,} examples, {event.n_texts:,} different texts, {event.n_steps:,} steps.")
        if not event.is_packed:
            say("This architecture runs with padding; expect it to be slower than BERT's kin.")
        if event.first is not None:
            say(f"Before training: {event.first.value:.2f} on {event.first.data} ({event.first.protocol}).")
        if event.step:
            say(f"Going on after step {event.step:,}.")
        self._n_steps = event.n_steps
        self._recent.clear()
        self._best = ""
        if sys.stderr.isatty():
            self._open(event.step)

    def step(self, report: StepReport) -> None:
        """Show the mean loss of the last steps, the rate and the speed."""
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
        say_over(self._bar, f"step {report.step:,}: dev {report.score:.2f}{' (best so far)' if report.is_best else ''}")
        if report.is_best:
            self._best = f"  best dev {report.score:.2f}"

    def finish(self, event: Finished) -> None:
        """Print the scores."""
        self._close()
        if event.scores:
            table = plain_table("data", "score", "")
            table.columns[2].justify = "right"
            for score in event.scores:
                table.add_row(score.data, score.protocol, f"{score.value:.2f}")
            open_console().print(table)
        say(f"Trained in {show_seconds(event.seconds)}; the weights are those of step {event.step:,}.")
        say(f"The model is in {event.folder}; its training/curve.png shows how it learned.")

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


def say_over(bar: Any, message: str) -> None:  # noqa: ANN401 - rich's bar, or none
    """A line that stays, above the bar if there is one."""
    if bar is None:
        say(message)
    else:
        bar.console.print(message)


def print_seeds(event: SeedsFinished) -> None:
    """Print the scores over all seeds."""
    table = plain_table("data", "score", f"mean of {len(event.seeds)}", "deviation", "best")
    for column in table.columns[2:]:
        column.justify = "right"
    for each in event.spreads:
        table.add_row(each.data, each.protocol, f"{each.mean:.2f}", f"{each.deviation:.2f}", f"{each.best:.2f}")
    open_console().print(table)
    say(f"The model of seed {event.best_seed} is in {event.folder}; those of all seeds are in {event.folder}.seeds.")
