"""PNG plots: style, heat maps, and the plots of the layer report. Requires matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinvec.analysis import LayerSurvey
from twinvec.analysis.layers import TextPicture
from twinvec.analysis.words import Extremes
from twinvec.extras import require
from twinvec.progress import shortened
from twinvec.report.fonts import drawable, use_fonts
from twinvec.types import Array

__all__ = [
    "INK",
    "SOFT",
    "draw_cells",
    "draw_cosines",
    "draw_distances",
    "draw_picture",
    "draw_words",
    "new_figure",
    "plain",
    "png_of",
]

INK, SOFT, FAINT, ACCENT = "#1f2933", "#52606d", "#94a3b8", "#2563eb"
COLORS = (ACCENT, "#d97706", "#059669", "#9333ea", "#dc2626", "#475569")  # of lines, in turn
PALE, DARK = "#f4f7fb", "#1e4fb4"  # the ends of the color map of cells
DPI = 120
LIGHT_TEXT_FROM = 0.62  # share of the scale above which a cell needs light text


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib's
    """A figure of a size in inches that works without a display."""
    require("matplotlib", extra="eval", feature="Drawing plots")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png_of(figure: Any) -> bytes:  # noqa: ANN401 - matplotlib's
    """The figure as the content of a PNG file."""
    use_fonts(figure)
    stream = BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})  # no version, so the bytes are reproducible
    return stream.getvalue()


def plain(axis: Any, title: str, *, grid: str | None = "y") -> None:  # noqa: ANN401 - matplotlib's
    """Style an axis: no frame, a title on the left, and pale grid lines behind the data."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, loc="left", fontsize=11, color=INK)
    if grid:
        axis.grid(axis=grid, color="#eef2f7")
        axis.set_axisbelow(True)


def draw_cells(axis: Any, values: Array, *, bounds: tuple[float, float], shown: Sequence[Sequence[str]]) -> Any:  # noqa: ANN401
    """Draw values ``(rows, columns)`` as colored cells with the texts ``shown``; NaN stays blank.

    Returns the image, for a color bar.
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


MAX_TITLE = 90
MEAN = "mean cosine over tokens"


def draw_distances(surveys: Sequence[LayerSurvey], distances: Sequence[int]) -> bytes:
    """Plot the mean cosine of each layer with an earlier one: a line per distance, for several models a panel each."""
    return png_of(_one_model(surveys[0], distances) if len(surveys) == 1 else _several_models(surveys, distances))


def _one_model(survey: LayerSurvey, distances: Sequence[int]) -> Any:  # noqa: ANN401 - matplotlib's
    figure = new_figure(8, 4.4)
    axis = figure.subplots()
    _draw_lines(axis, [(_back(k), survey.at_distance(k), k) for k in distances])
    plain(axis, f"{survey.model}: similarity of each layer to earlier layers")
    axis.set_ylabel(MEAN, color=SOFT)
    axis.legend(frameon=False, fontsize=9, title="cosine with", alignment="left")
    return figure


def _several_models(surveys: Sequence[LayerSurvey], distances: Sequence[int]) -> Any:  # noqa: ANN401 - matplotlib's
    n_rows = -(-len(distances) // 2)
    figure = new_figure(9.5, 0.9 + 3.0 * n_rows)
    axes = list(figure.subplots(n_rows, min(2, len(distances)), sharex=True, sharey=True, squeeze=False).ravel())
    for axis, k in zip(axes, distances, strict=False):
        _draw_lines(axis, [(survey.model, survey.at_distance(k), k) for survey in surveys])
        plain(axis, f"cosine with {_back(k)}")
        axis.tick_params(labelbottom=True)
    for axis in axes[::2]:
        axis.set_ylabel(MEAN, color=SOFT)
    for axis in axes[len(distances) :]:
        axis.set_visible(False)
    figure.suptitle("Similarity of each layer to earlier layers", x=0.01, ha="left", fontsize=12, color=INK)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5), frameon=False, fontsize=9)
    return figure


def _back(k: int) -> str:
    return "the layer before" if k == 1 else f"the layer {k} before"


def _draw_lines(axis: Any, lines: Sequence[tuple[str, NDArray[np.float64], int]]) -> None:  # noqa: ANN401
    """Draw lines, each with its label, values and first layer."""
    for i, (label, values, first) in enumerate(lines):
        x, color = np.arange(first, first + len(values)), COLORS[i % len(COLORS)]
        axis.plot(x, values, color=color, marker="o", markersize=4, linewidth=1.6, label=label)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylim(min([0.0, *(float(values.min()) for _, values, _ in lines if len(values))]), 1.0)
    axis.set_xlabel("layer", color=SOFT)


def draw_cosines(survey: LayerSurvey) -> bytes:
    """Plot the mean cosine between all pairs of layers."""
    n = len(survey.cosines)
    size = 1.8 + 0.46 * n
    figure = new_figure(max(size + 0.6, 4.6), max(size, 3.6))
    axis = figure.subplots()
    shown = [[f"{value:.2f}".replace("0.", ".", 1) for value in row] for row in survey.cosines]
    low = min(0.0, float(survey.cosines.min()))
    image = draw_cells(axis, survey.cosines, bounds=(low, 1.0), shown=shown)
    axis.set_xticks(range(n))
    axis.set_yticks(range(n))
    axis.set_xlabel("layer (0: embeddings)", color=SOFT)
    axis.set_ylabel("layer", color=SOFT)
    plain(axis, f"{survey.model}: cosine between two layers\nmean over {survey.n_tokens:,} tokens", grid=None)
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, shrink=0.8).outline.set_visible(False)
    return png_of(figure)


def draw_words(survey: LayerSurvey, found: Extremes) -> bytes:
    """Plot the variance of the lowest, middle and highest words as points, colored by kind of word."""
    parts = [("least", found.lowest), ("middle", found.middle), ("most", found.highest)]
    figure = new_figure(8, 1.3 + 0.2 * sum(len(part) for _, part in parts))
    axes = figure.subplots(3, 1, sharex=True, height_ratios=[max(len(part), 1) for _, part in parts])
    for axis, (name, part) in zip(axes, parts, strict=True):
        y = np.arange(len(part))
        values = np.array([each.variance for each in part])
        axis.hlines(y, 0, values, color="#e2e8f0", linewidth=1.2)
        axis.scatter(values, y, s=26, c=[FAINT if each.is_function else ACCENT for each in part], zorder=3)
        axis.set_yticks(y, [drawable(each.word) for each in part], fontsize=9)
        axis.set_ylim(len(part) - 0.4, -0.6)
        axis.set_ylabel(name, color=SOFT)
        axis.tick_params(length=0)
        plain(axis, "", grid="x")
        axis.spines["left"].set_visible(False)
    axes[0].set_title(f"{survey.model}: words by how unevenly they move through the layers", loc="left", fontsize=11)
    for label, color in (("content word", ACCENT), ("function word", FAINT)):
        axes[0].scatter([], [], s=26, color=color, label=label)
    axes[0].legend(frameon=False, fontsize=9, loc="upper right")
    axes[-1].set_xlim(left=0)
    figure.align_ylabels()
    layers = f"layers {survey.layer_start} to {survey.n_layers}"
    axes[-1].set_xlabel(f"variance of the cosines between adjacent layers, {layers}", color=SOFT)
    return png_of(figure)


def draw_picture(picture: TextPicture) -> bytes:
    """Plot a text's tokens by layers: importance as bars at the top, weights of layers as cells below."""
    n_layers, n_tokens = picture.weights.shape
    width = 2.2 + max(0.52 * n_tokens, 4.2)
    figure = new_figure(width, 2.9 + 0.3 * n_layers)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 0.5 + 0.3 * n_layers])
    top.bar(range(n_tokens), 100 * picture.importance, color=ACCENT, width=0.72)
    for i, share in enumerate(picture.importance):
        label = f"{100 * share:.0f}"
        top.annotate(label, (i, 100 * share), textcoords="offset points", xytext=(0, 2), ha="center", fontsize=8)
    top.margins(y=0.18)
    top.set_ylabel("importance\nof the token, %", color=SOFT)
    short = drawable(shortened(picture.text, MAX_TITLE))
    plain(top, f"{picture.model}, SBERT-WK: which tokens and layers make the vector\n“{short}”")
    top.tick_params(axis="x", which="both", length=0)
    percent = 100 * picture.weights[::-1]  # the last layer on top
    shown = [[f"{value:.0f}" for value in row] for row in percent]
    image = draw_cells(bottom, percent, bounds=(0.0, max(float(percent.max()), 1.0)), shown=shown)
    bottom.set_yticks(range(n_layers), [str(picture.layer_start + i) for i in range(n_layers)][::-1])
    names = [drawable(token) for token in picture.tokens]
    bottom.set_xticks(range(n_tokens), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
    bottom.set_ylabel("layer", color=SOFT)
    bar = figure.colorbar(image, ax=bottom, fraction=0.03, pad=0.01)
    bar.outline.set_visible(False)
    bar.set_label("layer's share\nof the token, %", color=SOFT, fontsize=9)
    return png_of(figure)
