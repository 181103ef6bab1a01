"""Tables and times for people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from twinvec.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["open_console", "plain_table", "print_json", "say", "show_seconds"]

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
