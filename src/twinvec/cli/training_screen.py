"""What a person sees of a training run: a bar while it goes on, a table at the end."""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from twinvec.cli.screen import open_console, plain_table, say, show_seconds

if TYPE_CHECKING:
    from twinvec.training.loop import StepReport
    from twinvec.training.report import DevReport, Finished, Started
    from twinvec.training.seeds import SeedsFinished, SeedStarted

__all__ = ["SoftStop", "show_training"]

N_SMOOTHED = 100  # steps whose mean loss and speed are shown
QUIET_S = 60.0  # between lines where there is no terminal


def show_training(events: Iterable[Any]) -> None:
    """Run to the end, showing each event."""
    from twinvec.training.loop import StepReport
    from twinvec.training.report import DevReport, Finished, Started
    from twinvec.training.seeds import SeedsFinished, SeedStarted

    screen = TrainingScreen()
    shown: dict[type, Callable[[Any], None]] = {
        SeedStarted: screen.seed,
        Started: screen.start,
        StepReport: screen.step,
        DevReport: screen.judged,
        Finished: screen.finish,
        SeedsFinished: print_seeds,
    }
    with screen:
        for event in events:
            shown[type(event)](event)


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

    def judged(self, report: DevReport) -> None:
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
