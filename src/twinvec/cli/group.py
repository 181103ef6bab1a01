"""How commands end: our own errors as one line, an interrupt without a traceback."""

from __future__ import annotations

import errno
from importlib.metadata import PackageNotFoundError, version

import click

from twinvec.errors import TwinvecError

__all__ = ["CleanErrors", "show_version"]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class CleanErrors(click.Group):
    """Show our own errors as one line on standard error; let real bugs show their traceback.

    A broken pipe on standard output (``twinvec embed ... | head``) ends in silence: click sees to that.
    """

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, turning errors into exit codes."""
        try:
            return super().invoke(ctx)
        except TwinvecError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            named = f"{error.filename!s:.200}: " if error.filename is not None else ""
            raise click.ClickException(f"{named}{error.strerror or error}.") from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)

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
