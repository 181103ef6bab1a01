"""What was predicted against what people said: cells, fuller where more pairs lie; dots where there are few.

The columns stand on the levels of the gold scores, where these are few: people's scores come in steps, and a grid with
other steps (hexagons, too) would show gaps that are not in the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log1p, log10
from typing import NamedTuple

import numpy as np

from twinvec.evaluate.result import Result
from twinvec.report.svg import Scale, element, figure, number, text
from twinvec.types import Array

__all__ = ["Columns", "columns_of", "density_plot"]

WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 10, 40
MOST_COLUMNS, N_ROWS = 26, 26
FEWEST_FOR_CELLS = 300
FEWEST_FOR_MEDIAN = 5


class Columns(NamedTuple):
    """The middle of each column, the distance of two, and the column of each item, ``(n,)``."""

    middles: Array
    step: float
    places: Array


def columns_of(gold: Array, most: int = MOST_COLUMNS) -> Columns:
    """Columns on the gold scores' levels ``(n,)`` if these are even and few, else ``most`` of equal width.

    >>> columns_of(np.array([0.0, 2.0, 1.0, 2.0])).places.tolist()
    [0, 2, 1, 2]
    """
    levels = np.unique(gold)
    steps = np.diff(levels)
    span = float(levels[-1] - levels[0]) or 1.0
    n_columns = round(span / float(steps.min())) + 1 if len(steps) else 1
    if n_columns > most:
        n_columns = most
    step = span / max(n_columns - 1, 1)
    places = np.round((gold - levels[0]) / step).astype(np.int64)
    return Columns(levels[0] + step * np.arange(n_columns), step, places)


def density_plot(result: Result) -> str:
    """Gold scores from left to right, predictions upwards."""
    outcome = result.outcome
    gold, predicted = np.asarray(outcome.gold, dtype=np.float64), np.asarray(outcome.predicted, dtype=np.float64)
    columns = columns_of(gold)
    half = columns.step / 2
    x_scale = Scale(float(columns.middles[0]) - half, float(columns.middles[-1]) + half, LEFT, WIDTH - RIGHT)
    y_scale = Scale(*_ends(predicted), HEIGHT - BOTTOM, TOP)
    if len(gold) < FEWEST_FOR_CELLS:
        marks = [_dot(x_scale(x), y_scale(y)) for x, y in zip(gold, predicted, strict=True)]
    else:
        scales = {"x_scale": x_scale, "y_scale": y_scale}
        marks = [*_cells(columns, predicted, **scales), _median_line(columns, predicted, **scales)]
    label = f"{result.task}: predicted against gold, {result.n:,} items"
    return figure(_frame(x_scale, y_scale) + "".join(marks), width=WIDTH, height=HEIGHT, label=label)


def _cells(columns: Columns, predicted: Array, *, x_scale: Scale, y_scale: Scale) -> Iterator[str]:
    share = (predicted - y_scale.low) / (y_scale.high - y_scale.low)
    rows = np.minimum((share * N_ROWS).astype(np.int64), N_ROWS - 1)
    cells, counts = np.unique(np.stack([columns.places, rows], axis=1), axis=0, return_counts=True)
    width = x_scale(columns.step) - x_scale(0)
    height = (y_scale.start - y_scale.end) / N_ROWS
    for (column, row), count in zip(cells.tolist(), counts.tolist(), strict=True):
        yield element(
            "rect",
            element("title", f"{count} item{'s' * (count != 1)}"),
            x=x_scale.start + column * width + 0.5,
            y=y_scale.start - (row + 1) * height + 0.5,
            width=width - 1,
            height=height - 1,
            rx=1.5,
            fill_opacity=0.08 + 0.92 * log1p(count) / log1p(int(counts.max())),
            class_="cell",
        )


def _median_line(columns: Columns, predicted: Array, *, x_scale: Scale, y_scale: Scale) -> str:
    points = []
    for place, middle in enumerate(columns.middles):
        here = predicted[columns.places == place]
        if len(here) >= FEWEST_FOR_MEDIAN:
            points.append(f"{number(x_scale(float(middle)))},{number(y_scale(float(np.median(here))))}")
    return element("polyline", points=" ".join(points), class_="median")


def _dot(x: float, y: float) -> str:
    return element("circle", cx=float(x), cy=float(y), r=3, class_="dot")


def _frame(x_scale: Scale, y_scale: Scale) -> str:
    bottom = HEIGHT - BOTTOM
    parts = []
    for tick in x_scale.ticks(_step(x_scale)):
        parts.append(element("line", x1=x_scale(tick), x2=x_scale(tick), y1=TOP, y2=bottom, class_="grid"))
        parts.append(text(f"{tick:g}", x_scale(tick), bottom + 16, class_="tick", anchor="middle"))
    for tick in y_scale.ticks(_step(y_scale)):
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y_scale(tick), y2=y_scale(tick), class_="grid"))
        parts.append(text(f"{tick:.10g}", LEFT - 8, y_scale(tick) + 4, class_="tick", anchor="end"))
    parts.append(text("gold score", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, class_="axis", anchor="middle"))
    middle = number((TOP + bottom) / 2)
    upwards = text("predicted", 0, 0, class_="axis", anchor="middle")
    return "".join([*parts, element("g", upwards, transform=f"translate(11,{middle}) rotate(-90)")])


def _ends(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _step(scale: Scale) -> float:
    """A round distance that gives four to eight ticks."""
    span = scale.high - scale.low
    base = 10.0 ** floor(log10(span))
    return next(base * factor for factor in (0.2, 0.5, 1.0, 2.0) if span / (base * factor) <= 8)
