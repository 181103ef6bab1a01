"""``twinvec compare``: whether one of two models is better, or only luckier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.cli.evaluate import EngineChoice, SuiteChoice, engine_options, suite_options
from twinvec.cli.screen import open_console, print_json, say

if TYPE_CHECKING:
    from twinvec.evaluation.compare import Comparison
    from twinvec.evaluation.result_file import Evaluation

__all__ = ["compare"]


@click.command()
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@suite_options
@engine_options
def compare(*, left: str, right: str, as_json: bool, suite: SuiteChoice, engine: EngineChoice) -> None:
    """Compare A and B item by item: files of ``twinvec evaluate --json``, or models, which are evaluated first.

    For every task that both have: the difference, its interval, and in a sentence whether it is more than chance,
    by tests on the same items, after Holm's correction for the number of tasks.
    """
    from twinvec.evaluation.compare import compare_evaluations

    one, other = (_evaluation(each, suite, engine) for each in (left, right))
    found = compare_evaluations(one, other)
    for message in found.left_out:
        say(f"Left out: {message}")
    if as_json:
        print_json([_as_dict(each) for each in found.comparisons], indent=2)
    else:
        print_comparisons(found.comparisons)


def _evaluation(name: str, suite: SuiteChoice, engine: EngineChoice) -> Evaluation:
    if name.endswith(".json"):
        from twinvec.evaluation.result_file import read_evaluation

        return read_evaluation(Path(name))
    from twinvec.evaluation.systems import SystemChoice

    return suite.run(SystemChoice(name, settings=engine.settings()))


def print_comparisons(comparisons: tuple[Comparison, ...]) -> None:
    """For each task both numbers under their protocol, and the sentence."""
    console = open_console()
    for each in comparisons:
        console.print(each.task, style="bold", soft_wrap=True)
        numbers = f"{each.names[0]} {each.left:.2f}, {each.names[1]} {each.right:.2f}"
        console.print(f"  {numbers} ({each.protocol})", soft_wrap=True)
        console.print(f"  {each.verdict}", style="green" if each.is_more_than_chance else "yellow", soft_wrap=True)


def _as_dict(each: Comparison) -> dict[str, Any]:
    names = ("task", "protocol", "names", "left", "right", "difference", "low", "high", "level", "p", "test", "verdict")
    found = {name: getattr(each, name) for name in names}
    return {**found, "p_values": dict(each.p_values), "n_compared": each.n_compared}
