"""Scores as bars with their intervals, and the scores of a task's subsets."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor

from twinvec.evaluate.result import Result, Subset
from twinvec.report.svg import Scale, element, figure, text
from twinvec.report.words import show_interval, show_value

__all__ = ["score_bars", "subset_bars"]

WIDTH = 960
LONGEST_NAME, NAME_WIDTH = 40, 7.8  # characters, and pixels for one
VALUES_WIDTH = 180
ROW_HEIGHT, BAR_HEIGHT = 34, 16
AXIS_HEIGHT = 28
SMALL_ROW_HEIGHT, SMALL_BAR_HEIGHT = 24, 10
SMALL_WIDTH, SMALL_LABEL_WIDTH, SMALL_VALUES_WIDTH = 460, 150, 96


def score_bars(results: Sequence[Result], names: Sequence[str], *, label: str) -> str:
    """One bar for each result, by name, from 0, with its interval as a line and the numbers beside it."""
    lows = [value for r in results for value in (r.low, r.value) if value is not None]
    shown = [_short(name, LONGEST_NAME) for name in names]
    longest = max(len(name) for name in shown)
    scale = Scale(_start(lows), 100, 32 + longest * NAME_WIDTH, WIDTH - VALUES_WIDTH)
    height = ROW_HEIGHT * len(results) + AXIS_HEIGHT
    rows = [
        _score_row(result, name, place * ROW_HEIGHT, scale=scale)
        for place, (result, name) in enumerate(zip(results, shown, strict=True))
    ]
    axis = _axis(scale, ROW_HEIGHT * len(results))
    return figure(axis + "".join(rows), width=WIDTH, height=height, label=label)


def subset_bars(subsets: Sequence[Subset], *, label: str) -> str:
    """A small bar for each subset; its name and how many items it has stand left, its number right."""
    values = [subset.value for subset in subsets if subset.value is not None]
    scale = Scale(_start(values), 100, SMALL_LABEL_WIDTH, SMALL_WIDTH - SMALL_VALUES_WIDTH)
    rows = [_subset_row(subset, place * SMALL_ROW_HEIGHT, scale) for place, subset in enumerate(subsets)]
    return figure("".join(rows), width=SMALL_WIDTH, height=SMALL_ROW_HEIGHT * len(subsets), label=label)


def _start(values: Sequence[float]) -> float:
    """Where the axis begins: at 0, or at the ten below the lowest negative number."""
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
    right = WIDTH - VALUES_WIDTH + 16
    parts.append(text(show_value(result), right + 44, middle + 5, class_="value", anchor="end"))
    parts.append(text(show_interval(result), right + 58, middle + 5, class_="range"))
    tip = f"{result.task}: {show_value(result)} ({show_interval(result) or 'no interval'}), {result.n:,} items"
    return element("g", element("title", escape(f"{tip}; {result.protocol}")), *parts)


def _subset_row(subset: Subset, top: float, scale: Scale) -> str:
    middle = top + SMALL_ROW_HEIGHT / 2
    parts = [text(_short(subset.name, 20), SMALL_LABEL_WIDTH - 10, middle + 4, class_="small", anchor="end")]
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


def _short(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
