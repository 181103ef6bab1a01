"""What ``twinvec demo`` prints: pairs, answers, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from twinvec.cli.screen import open_console, plain_table, show_seconds

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Answer", "Report", "Times", "print_report"]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each step."""

    gathering_s: float
    loading_s: float
    embedding_s: float
    comparing_s: float
    searching_s: float


class Match(NamedTuple):
    """Two rows and the score of their texts."""

    score: float
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its best texts: score and row each."""

    question: str
    hits: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Report:
    """The results of the demo."""

    texts: Sequence[str]
    nearest: Sequence[Match]
    reworded: Sequence[Match]
    answers: Sequence[Answer]
    times: Times


def print_report(report: Report) -> None:
    """Print everything to standard output."""
    console = open_console()
    for table in (
        pair_table(report, report.nearest, head="most similar (equal but for one word: left out)"),
        pair_table(report, report.reworded, head="most similar in other words (few words in common)"),
        *(answer_table(report, answer) for answer in report.answers),
        time_table(len(report.texts), report.times),
    ):
        console.print()
        console.print(table)


def pair_table(report: Report, matches: Sequence[Match], *, head: str) -> Table:
    """Pairs of sentences, one under the other."""
    table = plain_table("score", head)
    for score, left, right in matches:
        table.add_row(f"{score:.3f}", f"{report.texts[left]}\n{report.texts[right]}")
    return table


def answer_table(report: Report, answer: Answer) -> Table:
    """One question with its best sentences."""
    table = plain_table("score", answer.question)
    for score, row in answer.hits:
        table.add_row(f"{score:.3f}", report.texts[row])
    return table


def time_table(n_texts: int, times: Times) -> Table:
    """Each step's time on this machine, beside that of a cross-encoder."""
    rate = n_texts / times.embedding_s
    n_pairs = n_texts * (n_texts - 1) // 2
    table = plain_table("step", "this machine", "BERT cross-encoder, V100 GPU\n(Reimers & Gurevych 2019)")
    for column in table.columns[1:]:
        column.justify = "right"
    for step, seconds in (
        (f"gathering {n_texts:,} sentences", times.gathering_s),
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
