"""What people see: tables, times, errors as one line, interrupts without a traceback."""

from __future__ import annotations

import errno
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from twinvec.errors import TwinvecError
from twinvec.progress import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "CleanErrors",
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
