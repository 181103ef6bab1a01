"""``twinvec compare``: whether the difference between two models is more than chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinvec.cli.evaluate import SuiteChoice, suite_options, system_model_options
from twinvec.cli.options import ModelChoice, PromptChoice, json_option, prompt_options
from twinvec.cli.screen import open_console, print_json, say

if TYPE_CHECKING:
    from twinvec.evaluation.compare import Comparison

__all__ = ["compare"]


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
@suite_options
@system_model_options
@prompt_options
def compare(
    *, first: str, second: str, as_json: bool, suite: SuiteChoice, model: ModelChoice, prompt: PromptChoice
) -> None:
    """Compare A and B item by item. Each is a file of ``twinvec evaluate --json`` or a model, which is evaluated first.

    For every task that both have, prints the difference, its confidence interval, and whether it is more than chance:
    paired tests on the same items, with Holm's correction for the number of tasks.
    """
    import twinvec

    settings = {**model.arguments(), **prompt.arguments()}
    one, other = (
        name if name.endswith(".json") else twinvec.SystemChoice(name, settings=settings) for name in (first, second)
    )
    result = twinvec.compare(one, other, **suite.arguments())
    for message in result.left_out:
        say(f"Left out: {message}")
    if as_json:
        print_json([_as_dict(each) for each in result.comparisons], indent=2)
    else:
        print_comparisons(result.comparisons)


def print_comparisons(comparisons: tuple[Comparison, ...]) -> None:
    """Print both scores of each task, their protocol, and the verdict."""
    console = open_console()
    for each in comparisons:
        console.print(each.task, style="bold", soft_wrap=True)
        numbers = f"{each.names[0]} {each.left:.2f}, {each.names[1]} {each.right:.2f}"
        console.print(f"  {numbers} ({each.protocol})", soft_wrap=True)
        console.print(f"  {each.verdict}", style="green" if each.is_more_than_chance else "yellow", soft_wrap=True)


def _as_dict(each: Comparison) -> dict[str, Any]:
    names = ("task", "protocol", "names", "left", "right", "difference", "low", "high", "level", "p", "test", "verdict")
    return {name: getattr(each, name) for name in names} | {
        "p_values": dict(each.p_values),
        "n_compared": each.n_compared,
    }
