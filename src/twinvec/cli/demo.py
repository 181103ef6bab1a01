"""``twinvec demo``: all pairs of 10,000 sentences, the job that takes BERT 65 hours."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from twinvec.choices import DEFAULT_MODEL, PRECISIONS
from twinvec.cli.options import ModelChoice, model_options
from twinvec.cli.screen import open_console, plain_table, say, show_seconds
from twinvec.data.sentences import are_near_duplicates, gather_sentences, shared_words

if TYPE_CHECKING:
    from rich.table import Table

    from twinvec.encoder import Encoder
    from twinvec.search import Hits, Pairs
    from twinvec.types import Vectors

__all__ = [
    "Answer",
    "Report",
    "Times",
    "choose_pairs",
    "demo",
    "print_report",
]


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


Result = TypeVar("Result")

N_SENTENCES = 10_000
N_NEAREST, N_REWORDED = 5, 7
N_CANDIDATES = 20_000  # many of the best pairs differ in one word only
FEW_WORDS = 0.3  # share of common words of sentences that say the same in other words
N_ANSWERS = 3
QUESTIONS = (
    "How do I run another program and read its output?",
    "How can I make a temporary file that deletes itself?",
    "Which function guesses the type of a file from its name?",
)


@click.command()
@model_options(without=("long", "truncate_dim", "precision"))
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help=f"Arithmetic inside the model. Default: int8 for {DEFAULT_MODEL} on a CPU, else float32.",
)
def demo(model: ModelChoice, precision: str | None) -> None:
    """Find the most similar pairs among 10,000 sentences, and answer three questions from them.

    The sentences are those in the docstrings of Python's standard library, so they are on every machine. With
    BERT as a cross-encoder, comparing all 49,995,000 pairs takes about 65 hours on a V100 GPU (Reimers and
    Gurevych, 2019); the times at the end are those of this machine.
    """
    say("Gathering sentences from the docstrings of Python's standard library ...")
    texts, gathering_s = timed(lambda: gather_sentences(N_SENTENCES))
    if len(texts) < N_SENTENCES:
        say(f"This Python has only {len(texts):,} different sentences; taking all of them.")
    model = replace(model, precision=precision or default_precision(model))
    say(f"Loading {model.name} ({model.precision}) ...")
    encoder, loading_s = timed(model.load)
    say(f"Embedding {len(texts):,} sentences ...")
    vectors, embedding_s = timed(lambda: encoder.encode_document(texts))
    say(f"Comparing all {len(texts) * (len(texts) - 1) // 2:,} pairs ...")
    pairs, comparing_s = timed(lambda: compare(vectors))
    hits, searching_s = timed(lambda: ask(encoder, vectors))
    print_report(
        Report(
            texts=texts,
            nearest=choose_pairs(pairs, lambda a, b: not are_near_duplicates(texts[a], texts[b]), n=N_NEAREST),
            reworded=choose_pairs(pairs, lambda a, b: shared_words(texts[a], texts[b]) <= FEW_WORDS, n=N_REWORDED),
            answers=[
                Answer(question, list(zip(scores, ids, strict=True)))
                for question, ids, scores in zip(QUESTIONS, *hits, strict=True)
            ],
            times=Times(gathering_s, loading_s, embedding_s, comparing_s, searching_s),
        )
    )


def default_precision(model: ModelChoice) -> str:
    """int8 for our own model, of which we have measured that it is as good in it; float32 for others."""
    is_ours = model.name == DEFAULT_MODEL and (model.device, model.runtime) == ("cpu", "auto")
    return "int8" if is_ours else "float32"


def compare(vectors: Vectors) -> Pairs:
    """The best pairs, more than are shown; ``vectors`` is ``(n, width)``."""
    from twinvec.search import most_similar_pairs

    return most_similar_pairs(vectors, N_CANDIDATES)


def ask(encoder: Encoder, vectors: Vectors) -> Hits:
    """The best answers to the three questions; ``vectors`` is ``(n, width)``."""
    from twinvec.search import search

    return search(encoder.encode_query(list(QUESTIONS)), vectors, k=N_ANSWERS)


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What a piece of work gives, and the seconds it takes."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def choose_pairs(pairs: Pairs, wanted: Callable[[int, int], bool], *, n: int) -> list[Match]:
    """The first ``n`` pairs that are wanted; each text once."""
    chosen: list[Match] = []
    shown: set[int] = set()
    for left, right, score in zip(*pairs, strict=True):
        if len(chosen) == n:
            break
        if shown.isdisjoint((left, right)) and wanted(left, right):
            shown.update((left, right))
            chosen.append(Match(float(score), int(left), int(right)))
    return chosen
