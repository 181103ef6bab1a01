"""``twinvec demo``: compare all pairs of 10,000 sentences, a job that takes a BERT cross-encoder 65 hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from twinvec.choices import DEFAULT_MODEL, PRECISIONS
from twinvec.cli.options import ModelChoice, model_options
from twinvec.cli.screen import open_console, plain_table, say, show_seconds

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.search.demo import Answer, Demo, Match, Times

__all__ = ["demo"]


def print_report(report: Demo) -> None:
    """Print everything to standard output."""
    console = open_console()
    for table in (
        pair_table(report, report.nearest, head="most similar (without pairs that differ in one word)"),
        pair_table(report, report.reworded, head="most similar in other words (few words in common)"),
        *(answer_table(report, answer) for answer in report.answers),
        time_table(len(report.texts), report.times),
    ):
        console.print()
        console.print(table)


def pair_table(report: Demo, matches: Sequence[Match], *, head: str) -> Table:
    """A table of sentence pairs."""
    table = plain_table("score", head)
    for score, left, right in matches:
        table.add_row(f"{score:.3f}", f"{report.texts[left]}\n{report.texts[right]}")
    return table


def answer_table(report: Demo, answer: Answer) -> Table:
    """A table of one question and its best sentences."""
    table = plain_table("score", answer.question)
    for score, row in answer.hits:
        table.add_row(f"{score:.3f}", report.texts[row])
    return table


def time_table(n_texts: int, times: Times) -> Table:
    """A table of the time of each step, compared with a cross-encoder."""
    rate = n_texts / times.embedding_s
    n_pairs = n_texts * (n_texts - 1) // 2
    table = plain_table("step", "this machine", "BERT cross-encoder, V100 GPU\n(Reimers & Gurevych 2019)", n_left=1)
    for step, seconds in (
        (f"collecting {n_texts:,} sentences", times.gathering_s),
        ("loading the model", times.loading_s),
        (f"embedding ({rate:,.0f} sentences per second)", times.embedding_s),
        (f"comparing all {n_pairs:,} pairs", times.comparing_s),
        ("answering three questions", times.searching_s),
    ):
        table.add_row(step, show_seconds(seconds), "")
    whole = times.embedding_s + times.comparing_s
    table.add_section()
    table.add_row("all pairs: embedding and comparing", show_seconds(whole), "about 65 hours", style="bold")
    return table


@click.command()
@model_options(without=("long", "unknown", "truncate_dim", "precision"))
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help=f"Arithmetic inside the model. Default: int8 for {DEFAULT_MODEL} on a CPU, else float32.",
)
def demo(model: ModelChoice, precision: str | None) -> None:
    """Find the most similar pairs among 10,000 sentences, and search them for answers to three questions.

    The sentences come from the docstrings of Python's standard library, so every machine has them. A BERT
    cross-encoder takes about 65 hours on a V100 GPU to compare all 49,995,000 pairs (Reimers and Gurevych, 2019);
    the last table shows the times on this machine.
    """
    import twinvec

    model = replace(model, precision=precision or default_precision(model))
    print_report(twinvec.run_demo(model.embedder(), tell=say))


def default_precision(model: ModelChoice) -> str:
    """int8 for the default model on a CPU, where its measured quality is the same; float32 for others."""
    is_ours = model.name == DEFAULT_MODEL and (model.device, model.runtime) == ("cpu", "auto")
    return "int8" if is_ours else "float32"
