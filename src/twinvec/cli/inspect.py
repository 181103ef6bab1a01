"""``twinvec inspect``: describe a model."""

from __future__ import annotations

import click

from twinvec.cli.options import json_option, model_argument
from twinvec.cli.screen import fact_table, open_console, print_json

__all__ = ["inspect"]


@click.command()
@model_argument
@json_option
def inspect(name: str, as_json: bool) -> None:
    """Describe MODEL: architecture, width, pooling, prompts, maximum length, size, and its pitfalls.

    MODEL is a folder or a name. Default: TWINVEC_MODEL, or the model that comes with Twinvec. No weights are loaded.
    """
    import twinvec

    description = twinvec.inspect_model(name)
    if as_json:
        print_json(description.as_dict(), indent=2)
        return
    console = open_console()
    console.print(fact_table(description.rows()))
    for warning in description.warnings:
        console.print(f"Warning: {warning}", style="yellow")
