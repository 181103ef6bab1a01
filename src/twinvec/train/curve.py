"""The learning curve of a run as a picture: loss above, dev score below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.extras import require
from twinvec.types import Array

__all__ = ["draw_curve", "smoothed"]

INK, ACCENT, FAINT = "#1f2933", "#2563eb", "#cbd5e1"


def smoothed(values: Array, window: int) -> Array:
    """The mean of each value and those before it, at most ``window`` of them. ``(n,)`` to ``(n,)``.

    >>> smoothed(np.array([2.0, 4.0, 6.0]), 2).tolist()
    [2.0, 3.0, 5.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def draw_curve(rows: Sequence[Mapping[str, Any]], target: Path, *, title: str, protocol: str = "") -> None:
    """Draw the rows of a log; ``protocol`` names the dev score, if there is one."""
    require("matplotlib", extra="train", feature="The learning curve")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps = [row for row in rows if "loss" in row]
    scores = [row for row in rows if "dev" in row]
    figure = Figure(figsize=(8, 5.4 if scores else 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2 if scores else 1, 1, sharex=True, squeeze=False)[:, 0]
    x, losses = [row["step"] for row in steps], np.array([row["loss"] for row in steps], dtype=np.float64)
    axes[0].plot(x, losses, color=FAINT, linewidth=0.7, label="each step")
    axes[0].plot(x, smoothed(losses, max(1, len(x) // 50)), color=ACCENT, linewidth=1.6, label="running mean")
    axes[0].set_ylabel("loss")
    axes[0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    low, high = np.quantile(losses, [0.005, 0.995]) if len(losses) else (0.0, 1.0)
    axes[0].set_ylim(low - 0.1 * (high - low + 1e-9), high + 0.1 * (high - low + 1e-9))
    axes[0].set_title(title, loc="left", fontsize=11, color=INK)
    if scores:
        _draw_scores(axes[1], scores, protocol)
    axes[-1].set_xlabel("step")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#eef2f7")
        axis.set_axisbelow(True)
    figure.savefig(target)


def _draw_scores(axis: Any, scores: Sequence[Mapping[str, Any]], protocol: str) -> None:  # noqa: ANN401 - matplotlib's
    best = max((row for row in scores if row["step"]), key=lambda row: float(row["dev"]), default=scores[0])
    axis.plot([row["step"] for row in scores], [row["dev"] for row in scores], color=ACCENT, marker="o", markersize=4)
    axis.plot([best["step"]], [best["dev"]], color=ACCENT, marker="o", markersize=10, markerfacecolor="none")
    axis.set_title(f"best {best['dev']:.2f}, at step {best['step']:,}", loc="right", fontsize=10, color=INK)
    axis.set_ylabel(f"dev: {protocol}" if protocol else "dev")
