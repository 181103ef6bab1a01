"""Tables and times for people."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["open_console", "plain_table", "say", "show_seconds"]

MAX_WIDTH = 100  # longer lines are hard to read; also that of output to a file or a pipe


def open_console() -> Console:
    """Standard output for tables. Texts are shown as they are: no markup, no emoji codes, no coloring."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    console.width = min(console.width, MAX_WIDTH) if sys.stdout.isatty() else MAX_WIDTH
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

    click.echo(message, err=True)


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
