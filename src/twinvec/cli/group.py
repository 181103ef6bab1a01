"""How commands end: our own errors as one line, an interrupt without a traceback."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from twinvec.errors import TwinvecError
from twinvec.terminal import visible

__all__ = ["CleanErrors", "if_interrupted", "show_version"]

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
    try:
        click.echo(f"twinvec {version('twinvec')}")
    except PackageNotFoundError:
        click.echo("twinvec, not installed as a package")
    ctx.exit()
