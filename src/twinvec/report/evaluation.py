"""An evaluation as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log1p, log10
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twinvec.evaluation.result_file import Evaluation, Result, Subset, write_evaluation
from twinvec.files import new_file
from twinvec.progress import shortened
from twinvec.report.html import (
    Scale,
    document,
    element,
    facts,
    figure,
    number,
    protocols,
    show_interval,
    show_value,
    table,
    text,
)
from twinvec.report.markdown import as_markdown
from twinvec.types import Array

__all__ = ["as_html", "columns_of", "density_plot", "write_reports"]

BAR_WIDTH = 960
MAX_NAME, NAME_WIDTH = 40, 7.8  # characters; pixels per character
VALUES_WIDTH = 180
ROW_HEIGHT, BAR_HEIGHT = 34, 16
AXIS_HEIGHT = 28
SMALL_ROW_HEIGHT, SMALL_BAR_HEIGHT = 24, 10
SMALL_WIDTH, SMALL_LABEL_WIDTH, SMALL_VALUES_WIDTH = 460, 150, 96


def score_bars(results: Sequence[Result], names: Sequence[str], *, label: str) -> str:
    """One bar per result, starting at 0, with its name, its interval as a line, and the numbers."""
    lows = [value for r in results for value in (r.low, r.value) if value is not None]
    names = [shortened(name, MAX_NAME) for name in names]
    scale = Scale(_start(lows), 100, 32 + max(map(len, names)) * NAME_WIDTH, BAR_WIDTH - VALUES_WIDTH)
    bottom = ROW_HEIGHT * len(results)
    rows = [
        _score_row(result, name, row * ROW_HEIGHT, scale=scale)
        for row, (result, name) in enumerate(zip(results, names, strict=True))
    ]
    return figure(_axis(scale, bottom) + "".join(rows), width=BAR_WIDTH, height=bottom + AXIS_HEIGHT, label=label)


def subset_bars(subsets: Sequence[Subset], *, label: str) -> str:
    """A small bar per subset, with its name on the left, and its score and number of items on the right."""
    values = [subset.value for subset in subsets if subset.value is not None]
    scale = Scale(_start(values), 100, SMALL_LABEL_WIDTH, SMALL_WIDTH - SMALL_VALUES_WIDTH)
    rows = [_subset_row(subset, row * SMALL_ROW_HEIGHT, scale) for row, subset in enumerate(subsets)]
    return figure("".join(rows), width=SMALL_WIDTH, height=SMALL_ROW_HEIGHT * len(subsets), label=label)


def _start(values: Sequence[float]) -> float:
    """The start of the axis: 0, or the next multiple of 10 below the lowest negative value."""
    return min(0.0, floor(min(values, default=0.0) / 10) * 10.0)


def _axis(scale: Scale, bottom: float) -> str:
    parts = []
    for tick in scale.ticks(20):
        x = scale(tick)
        parts.append(element("line", x1=x, x2=x, y1=0, y2=bottom, class_="zero" if tick == 0 else "grid"))
        parts.append(text(f"{tick:g}", x, bottom + 18, class_="tick", anchor="middle"))
    return "".join(parts)


def _score_row(result: Result, name: str, top: float, *, scale: Scale) -> str:
    middle = top + ROW_HEIGHT / 2
    parts = [text(name, scale.start - 12, middle + 5, class_="name", anchor="end")]
    if result.value is None:
        parts.append(text("undefined", scale(0) + 8, middle + 5, class_="problem"))
        return element("g", element("title", escape(result.problem)), *parts)
    parts.append(_bar(scale, result.value, middle, height=BAR_HEIGHT))
    if result.low is not None and result.high is not None:
        low, high = scale(result.low), scale(result.high)
        parts.append(element("line", x1=low, x2=high, y1=middle, y2=middle, class_="interval"))
        parts += [element("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5, class_="interval") for x in (low, high)]
    right = BAR_WIDTH - VALUES_WIDTH + 16
    parts.append(text(show_value(result), right + 44, middle + 5, class_="value", anchor="end"))
    parts.append(text(show_interval(result), right + 58, middle + 5, class_="range"))
    tip = f"{result.task}: {show_value(result)} ({show_interval(result) or 'no interval'}), {result.n:,} items"
    return element("g", element("title", escape(f"{tip}; {result.protocol}")), *parts)


def _subset_row(subset: Subset, top: float, scale: Scale) -> str:
    middle = top + SMALL_ROW_HEIGHT / 2
    parts = [text(shortened(subset.name, 20), SMALL_LABEL_WIDTH - 10, middle + 4, class_="small", anchor="end")]
    parts.append(element("line", x1=scale(0), x2=scale(100), y1=middle, y2=middle, class_="grid"))
    if subset.value is not None:
        parts.append(_bar(scale, subset.value, middle, height=SMALL_BAR_HEIGHT))
    right = SMALL_WIDTH - SMALL_VALUES_WIDTH
    shown = show_value(subset)
    parts.append(text(shown, right + 46, middle + 4, class_="smallvalue", anchor="end"))
    parts.append(text(f"n {subset.n:,}", SMALL_WIDTH, middle + 4, class_="tick", anchor="end"))
    tip = f"{subset.name}: {shown}, {subset.n:,} items. {subset.problem}".strip()
    return element("g", element("title", escape(tip)), *parts)


def _bar(scale: Scale, value: float, middle: float, *, height: float) -> str:
    left, right = sorted((scale(0), scale(value)))
    return element(
        "rect", x=left, y=middle - height / 2, width=max(right - left, 0.5), height=height, rx=2, class_="bar"
    )


DENSITY_WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 10, 40
MAX_COLUMNS, N_ROWS = 26, 26
MIN_FOR_CELLS = 300
MIN_FOR_MEDIAN = 5


class Columns(NamedTuple):
    """The center of each column, the distance between columns, and the column of each item, ``(n,)``."""

    middles: Array
    step: float
    indices: Array


def columns_of(gold: Array, max_columns: int = MAX_COLUMNS) -> Columns:
    """One column per level of the gold scores ``(n,)`` if levels are even and few, else ``max_columns``.

    >>> columns_of(np.array([0.0, 2.0, 1.0, 2.0])).indices.tolist()
    [0, 2, 1, 2]
    """
    levels = np.unique(gold)
    steps = np.diff(levels)
    span = float(levels[-1] - levels[0]) or 1.0
    n_columns = min(round(span / float(steps.min())) + 1, max_columns) if len(steps) else 1
    step = span / max(n_columns - 1, 1)
    indices = np.round((gold - levels[0]) / step).astype(np.int64)
    return Columns(levels[0] + step * np.arange(n_columns), step, indices)


def density_plot(result: Result) -> str:
    """A plot of predictions (y) against gold scores (x): dots, or cells and a median line for many items."""
    outcome = result.outcome
    gold, predicted = np.asarray(outcome.gold, dtype=np.float64), np.asarray(outcome.predicted, dtype=np.float64)
    columns = columns_of(gold)
    half = columns.step / 2
    x_scale = Scale(float(columns.middles[0]) - half, float(columns.middles[-1]) + half, LEFT, DENSITY_WIDTH - RIGHT)
    y_scale = Scale(*_ends(predicted), HEIGHT - BOTTOM, TOP)
    if len(gold) < MIN_FOR_CELLS:
        points = [(float(x_scale(x)), float(y_scale(y))) for x, y in zip(gold, predicted, strict=True)]
        marks = [element("circle", cx=x, cy=y, r=3, class_="dot") for x, y in points]
    else:
        scales = {"x_scale": x_scale, "y_scale": y_scale}
        marks = [*_cells(columns, predicted, **scales), _median_line(columns, predicted, **scales)]
    label = f"{result.task}: predicted against gold, {result.n:,} items"
    return figure(_frame(x_scale, y_scale) + "".join(marks), width=DENSITY_WIDTH, height=HEIGHT, label=label)


def _cells(columns: Columns, predicted: Array, *, x_scale: Scale, y_scale: Scale) -> Iterator[str]:
    share = (predicted - y_scale.low) / (y_scale.high - y_scale.low)
    rows = np.minimum((share * N_ROWS).astype(np.int64), N_ROWS - 1)
    cells, counts = np.unique(np.stack([columns.indices, rows], axis=1), axis=0, return_counts=True)
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
    for i, middle in enumerate(columns.middles):
        here = predicted[columns.indices == i]
        if len(here) >= MIN_FOR_MEDIAN:
            points.append(f"{number(x_scale(float(middle)))},{number(y_scale(float(np.median(here))))}")
    return element("polyline", points=" ".join(points), class_="median")


def _frame(x_scale: Scale, y_scale: Scale) -> str:
    bottom = HEIGHT - BOTTOM
    parts = []
    for tick in x_scale.ticks(_step(x_scale)):
        parts.append(element("line", x1=x_scale(tick), x2=x_scale(tick), y1=TOP, y2=bottom, class_="grid"))
        parts.append(text(f"{tick:g}", x_scale(tick), bottom + 16, class_="tick", anchor="middle"))
    for tick in y_scale.ticks(_step(y_scale)):
        parts.append(
            element("line", x1=LEFT, x2=DENSITY_WIDTH - RIGHT, y1=y_scale(tick), y2=y_scale(tick), class_="grid")
        )
        parts.append(text(f"{tick:.10g}", LEFT - 8, y_scale(tick) + 4, class_="tick", anchor="end"))
    parts.append(text("gold score", (LEFT + DENSITY_WIDTH - RIGHT) / 2, HEIGHT - 6, class_="axis", anchor="middle"))
    middle = number((TOP + bottom) / 2)
    upwards = text("predicted", 0, 0, class_="axis", anchor="middle")
    return "".join([*parts, element("g", upwards, transform=f"translate(11,{middle}) rotate(-90)")])


def _ends(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _step(scale: Scale) -> float:
    """A round step that gives four to eight ticks."""
    span = scale.high - scale.low
    base = 10.0 ** floor(log10(span))
    return next(base * factor for factor in (0.2, 0.5, 1.0, 2.0) if span / (base * factor) <= 8)


CORRELATIONS = "spearman", "pearson"
SHADES = "Darker cells have more pairs, on a logarithmic scale; the line connects the medians of the columns."
INTERVALS = "Thin lines are 95 % confidence intervals, from bootstrap resamples of the items."


def write_reports(
    evaluation: Evaluation,
    *,
    json: Path | None = None,
    markdown: Path | None = None,
    html: Path | None = None,
    replace: bool = False,
) -> None:
    """Write an evaluation as files: ``json`` (with every prediction, for ``compare``), ``markdown`` and ``html``."""
    if json is not None:
        write_evaluation(evaluation, json, replace=replace)
    for file, render in ((markdown, as_markdown), (html, as_html)):
        if file is not None:
            with new_file(file, replace=replace) as stream:
                stream.write(render(evaluation).encode())


def as_html(evaluation: Evaluation) -> str:
    """The HTML page of an evaluation."""
    return document(f"Evaluation of {evaluation.system}", _parts(evaluation))


def _parts(evaluation: Evaluation) -> Iterator[str]:
    day = evaluation.date.partition("T")[0]
    tasks = list(dict.fromkeys(result.task for result in evaluation.results))
    yield element("p", f"Evaluation report · {escape(day)}", class_="eyebrow")
    yield element("h1", escape(evaluation.system))
    count = f"{len(tasks)} task{'s' * (len(tasks) != 1)}: {', '.join(tasks)}."
    yield element("p", escape(count), class_="lead")
    yield _tiles(evaluation)
    alone: dict[str, list[Result]] = {}  # by task, results whose protocol no other task shares
    for protocol, results in protocols(evaluation).items():
        if len(results) > 1:
            yield from _scores(protocol, results, [result.task for result in results])
        else:
            alone.setdefault(results[0].task, []).append(results[0])
    for task, results in alone.items():
        yield from _scores(task, results, [result.protocol.partition(", ")[0] for result in results])
    drawn = {(r.task, r.outcome.predicted.tobytes()): r for r in reversed(evaluation.results) if _has_plot(r)}
    yield from _agreement(list(reversed(drawn.values())))  # one plot for two statistics of the same predictions
    yield from _subsets([result for result in evaluation.results if len(result.subsets) > 1])
    yield element("h2", "All numbers")
    yield _numbers(evaluation.results)
    yield element("h2", "How this was measured")
    rows = [element("tr", element("th", escape(name)), element("td", escape(fact))) for name, fact in facts(evaluation)]
    yield element("table", *rows, class_="facts")


def _tiles(evaluation: Evaluation) -> str:
    """Tiles with the mean score of each protocol with several tasks, and the first score of every other task."""
    tiles: list[str] = []
    seen: set[str] = set()
    for protocol, results in protocols(evaluation).items():
        values = [result.value for result in results if result.value is not None]
        if not values or (len(results) == 1 and results[0].task in seen):
            continue
        seen.update(result.task for result in results)
        names = ", ".join(result.task for result in results)
        what = names if len(results) == 1 else f"mean of {names if len(results) < 5 else f'{len(values)} tasks'}"
        parts = [("number", f"{sum(values) / len(values):.2f}"), ("what", what), ("how", protocol)]
        tiles.append(element("div", *(element("p", escape(t), class_=c) for c, t in parts), class_="card tile"))
    return element("div", *tiles[:6], class_="tiles")


def _scores(title: str, results: Sequence[Result], names: Sequence[str]) -> Iterator[str]:
    """A chart of scores; protocols that are neither its title nor the names of its bars are listed below it."""
    yield element("h2", escape(title))
    yield element("p", INTERVALS, class_="note")
    yield _card(score_bars(results, names, label=f"Scores: {title}"), class_="card chart")
    others = [result.protocol for result in results if result.protocol not in (title, *names)]
    if others:
        yield element("p", escape("; ".join(others) + "."), class_="note")
    for result in results:
        if result.problem:
            yield element("p", escape(f"{result.task}: {result.problem}"), class_="problem")


def _has_plot(result: Result) -> bool:
    return result.outcome.gold is not None and result.outcome.statistic in CORRELATIONS and result.n > 1


def _agreement(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        return
    yield element("h2", "Predicted against gold")
    yield element("p", SHADES, class_="note")
    yield element("div", *(_card(density_plot(r), caption=_caption(r)) for r in results), class_="pair")


def _subsets(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        return
    yield element("h2", "Subsets")
    yield element("p", "The same measure for each subset; n is the number of items.", class_="note")
    drawn = [_card(subset_bars(r.subsets, label=f"Subsets of {r.task}"), caption=_caption(r)) for r in results]
    yield element("div", *drawn, class_="pair")


def _caption(result: Result) -> str:
    return f"{element('h3', escape(result.task))}{escape(f'{show_value(result)} · {result.protocol}')}"


def _card(drawing: str, *, caption: str = "", class_: str = "card") -> str:
    return element("figure", element("figcaption", caption) if caption else "", drawing, class_=class_)


def _numbers(results: Sequence[Result]) -> str:
    heads = [("task", ""), ("score", "number"), ("95 % interval", "number"), ("items", "number"), ("protocol", "")]
    rows = [[each.task, show_value(each), show_interval(each), f"{each.n:,}", each.protocol] for each in results]
    return table(heads, rows)
