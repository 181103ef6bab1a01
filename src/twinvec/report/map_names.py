"""Names on a map: each near its cluster, none over another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Frame", "spread_names"]

LETTER, LINE, PADDING = 7.6, 26.0, 16.0  # of a name with its margin, in units of the frame
MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a drawing."""

    width: float
    height: float


def spread_names(
    names: Sequence[str], wanted: Sequence[tuple[float, float]], frame: Frame
) -> list[tuple[float, float]]:
    """The middle of each name: where it is wanted, or as few lines above or below as are free. The first come first.

    >>> spread_names(["cats", "dogs"], [(100.0, 100.0), (105.0, 102.0)], Frame(200, 200))
    [(100.0, 100.0), (105.0, 128.0)]
    """
    placed: list[tuple[float, float]] = []
    widths = [LETTER * len(name) + PADDING for name in names]
    for (x, y), width in zip(wanted, widths, strict=True):
        x = _within(x, width / 2, frame.width)
        free = (
            (x, place)
            for place in _lines(y, frame.height)
            if not any(_overlap((x, place), width, other, widths[rank]) for rank, other in enumerate(placed))
        )
        placed.append(next(free, (x, _within(y, LINE / 2, frame.height))))
    return placed


def _lines(y: float, height: float) -> Iterator[float]:
    """Heights to try, from the nearest on, as far as they are within the frame."""
    for away in range(MOST_LINES):
        for place in dict.fromkeys((y + away * LINE, y - away * LINE)):
            if LINE / 2 <= place <= height - LINE / 2:
                yield place


def _overlap(one: tuple[float, float], width: float, other: tuple[float, float], other_width: float) -> bool:
    return abs(one[1] - other[1]) < LINE and abs(one[0] - other[0]) < (width + other_width) / 2


def _within(place: float, margin: float, size: float) -> float:
    return min(max(place, margin), max(size - margin, margin))
