"""``twinvec inspect``: what is in a model folder."""

from __future__ import annotations

import click

from twinvec.cli.options import model_argument
from twinvec.cli.screen import open_console, plain_table, print_json

__all__ = ["inspect"]


@click.command()
@model_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(name: str, as_json: bool) -> None:
    """Show what MODEL is: architecture, width, pooling, prompts, length, size, and what to beware of.

    MODEL is a folder or a name; without it, the model of TWINVEC_MODEL, or the one that comes with Twinvec.
    No weights are loaded.
    """
    import twinvec

    found = twinvec.inspect_model(name)
    if as_json:
        print_json(found.as_dict(), indent=2)
        return
    console, table = open_console(), plain_table("", "")
    table.show_header = False
    table.columns[0].style = "bold"
    for label, value in found.rows():
        table.add_row(label, value)
    console.print(table)
    for warning in found.warnings:
        console.print(f"Warning: {warning}", style="yellow")
