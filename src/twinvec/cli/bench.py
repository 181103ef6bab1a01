"""``twinvec bench``: how fast a model is on this machine, and how faithful each precision."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import click

from twinvec.choices import PRECISIONS
from twinvec.cli.options import ModelChoice, model_options
from twinvec.cli.screen import open_console, plain_table, say
from twinvec.errors import DeviceError, MissingExtraError

if TYPE_CHECKING:
    from twinvec.encoder import Encoder

__all__ = ["bench"]

ROUNDS = 5
N_TEXTS, N_SINGLE = 990, 20


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured at one precision."""

    precision: str
    texts_per_s: float
    single_ms: float
    cosine: float | None


@click.command()
@model_options(without=("precision", "long", "truncate_dim"))
@click.option(
    "--precision",
    "asked",
    type=click.Choice(PRECISIONS),
    multiple=True,
    help="Measure this one; may be given several times. Default: all that this machine has.",
)
def bench(*, model: ModelChoice, asked: tuple[str, ...]) -> None:
    """Measure a model on this machine: texts per second, and milliseconds for a single text.

    Median of 5 rounds after a warm-up, on 990 built-in sentences of 15 words on average. For each precision
    also the mean cosine of its vectors to those of float32.
    """
    encoders = load_precisions(model, asked)
    say(f"Measuring {', '.join(encoders)}: {ROUNDS} rounds of {N_TEXTS} texts ...")
    table = plain_table("precision", "texts per second", "ms for one text", "mean cosine to float32")
    for column in table.columns[1:]:
        column.justify = "right"
    for speed in measure(encoders):
        if speed.precision in (asked or encoders):
            cosine = "" if speed.cosine is None else f"{speed.cosine:.5f}"
            table.add_row(speed.precision, f"{speed.texts_per_s:,.0f}", f"{speed.single_ms:.2f}", cosine)
    open_console().print(table)


def load_precisions(model: ModelChoice, asked: tuple[str, ...]) -> dict[str, Encoder]:
    """An encoder per precision, float32 always first; those not asked for by name may be missing here."""
    encoders = {"float32": replace(model, precision="float32").load()}
    for precision in asked or PRECISIONS:
        if precision in encoders:
            continue
        try:
            encoder = replace(model, precision=precision).load()
            if encoder.engine.precision == precision:
                encoders[precision] = encoder
            else:  # a row of that name would show another one's speed
                say(f"Left out {precision}: this machine computes it in {encoder.engine.precision}.")
        except (DeviceError, MissingExtraError) as error:
            if asked:
                raise
            say(f"Left out {precision}: {error}")
    return encoders


def measure(encoders: Mapping[str, Encoder]) -> list[Speed]:
    """The speed of each encoder; rounds are interleaved, so that a busy moment hits all alike."""
    from twinvec.engine.calibration import sample_texts
    from twinvec.vectors import similarity_pairwise

    texts = sample_texts(N_TEXTS)
    vectors = {name: encoder.encode(texts, progress=False) for name, encoder in encoders.items()}  # warms up
    whole: dict[str, list[float]] = {name: [] for name in encoders}
    single: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(ROUNDS):
        for name, encoder in encoders.items():
            whole[name].append(seconds_of(partial(encoder.encode, texts, progress=False)))
            single[name] += [seconds_of(partial(encoder.encode, text)) for text in texts[:N_SINGLE]]
    return [
        Speed(
            precision=name,
            texts_per_s=len(texts) / median(whole[name]),
            single_ms=1000 * median(single[name]),
            cosine=None if name == "float32" else float(similarity_pairwise(vectors[name], vectors["float32"]).mean()),
        )
        for name in encoders
    ]


def seconds_of(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
