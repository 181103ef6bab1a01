"""The look of plots in files: sizes, colors, heat maps with a number in every cell. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from twinvec.extras import require
from twinvec.types import Array

__all__ = ["ACCENT", "COLORS", "FAINT", "INK", "SOFT", "draw_cells", "new_figure", "plain", "png_of"]

INK, SOFT, FAINT, ACCENT = "#1f2933", "#52606d", "#94a3b8", "#2563eb"
COLORS = (ACCENT, "#d97706", "#059669", "#9333ea", "#dc2626", "#475569")  # of lines, in turn
PALE, DARK = "#f4f7fb", "#1e4fb4"  # the ends of the colors of cells
DPI = 120
LIGHT_TEXT_FROM = 0.62  # share of the scale from which a cell is too dark for dark text


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib's
    """A figure of this many inches that needs no display."""
    require("matplotlib", extra="eval", feature="Drawing plots")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png_of(figure: Any) -> bytes:  # noqa: ANN401 - matplotlib's
    """The figure as the content of a PNG file."""
    stream = BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})  # else it names the version, and bytes differ
    return stream.getvalue()


def plain(axis: Any, title: str, *, grid: str | None = "y") -> None:  # noqa: ANN401 - matplotlib's
    """Take away the frame; title on the left, pale lines behind the data."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, loc="left", fontsize=11, color=INK)
    if grid:
        axis.grid(axis=grid, color="#eef2f7")
        axis.set_axisbelow(True)


def draw_cells(axis: Any, values: Array, *, bounds: tuple[float, float], shown: Sequence[Sequence[str]]) -> Any:  # noqa: ANN401
    """Values ``(rows, columns)`` as colored cells with what is to be ``shown`` in each; NaN stays blank.

    Gives the image, for a color bar.
    """
    from matplotlib.colors import LinearSegmentedColormap

    low, high = bounds
    colors = LinearSegmentedColormap.from_list("blues", [PALE, "#7da7ea", DARK]).with_extremes(bad="#ffffff")
    image = axis.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        is_dark = np.isfinite(value) and value > low + LIGHT_TEXT_FROM * (high - low)
        color = "#ffffff" if is_dark else INK
        axis.text(column, row, shown[row][column], ha="center", va="center", fontsize=8, color=color)
    axis.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="#ffffff", linewidth=1.5)
    axis.tick_params(which="both", length=0)
    axis.spines[:].set_visible(False)
    return image
