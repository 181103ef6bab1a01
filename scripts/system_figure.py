"""Draw docs/lab/systems.svg: quality and time of every kind of system, from the newest result of benchmarks/systems.py.

python scripts/system_figure.py
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from result_markdown import show_time
from result_tables import LAB, newest

INK, FAINT = "#334155", "#94a3b8"
COLORS = {"embeds": "#2563eb", "scores": "#c2410c"}
LABELS = {"embeds": "embeds each text once", "scores": "scores each pair"}
TICKS = 1, 10, 60, 600, 3600, 36_000
PLACES = [(dx, dy) for dx in (7, -7) for dy in (4, -11)]  # of a label, in points; the first that is free is used
MARKS = ((5, "SBERT on a V100: 5 s"), (65 * 3600, "BERT on a V100: 65 h"))


def draw(result: dict[str, Any]) -> Figure:
    """A point per system: seconds, and the Spearman correlation on the STS benchmark."""
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    FigureCanvasSVG(figure)
    axis = figure.subplots()
    for kind, color in COLORS.items():
        rows = [row for row in result["rows"] if row["kind"] == kind]
        x, y = [row["seconds"] for row in rows], [row["stsb"] for row in rows]
        axis.scatter(x, y, s=46, color=color, label=LABELS[kind], zorder=3)
    low, high = axis.get_ylim()
    for seconds, name in MARKS:
        axis.axvline(seconds, color=FAINT, linewidth=0.8, linestyle=(0, (4, 4)))
        axis.text(
            seconds,
            low,
            f" {name} ",
            fontsize=8,
            color=FAINT,
            rotation=90,
            va="bottom",
            ha="right",
        )
    axis.set_ylim(low, high + 2)
    axis.set_xscale("log")
    axis.set_xlim(right=8 * MARKS[-1][0])
    axis.set_xticks(TICKS, [show_time(tick) for tick in TICKS])
    axis.minorticks_off()
    axis.set_xlabel(
        f"time to find the most similar pair of {result['n_texts']:,} sentences, {result['machine']['cores']} CPU cores"
    )
    axis.set_ylabel("STS benchmark, test: Spearman x 100")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#e2e8f0", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(frameon=False, loc="lower right", bbox_to_anchor=(0.84, 0.02))
    figure.draw_without_rendering()  # the layout decides where points are
    label(axis, result["rows"])
    return figure


def label(axis: Axes, rows: list[dict[str, Any]]) -> None:
    """Write the name of each system next to its point, where it covers no point and no other name."""
    points = axis.transData.transform([(row["seconds"], row["stsb"]) for row in rows])
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    for row in rows:
        for place in PLACES:
            side = "left" if place[0] > 0 else "right"
            text = axis.annotate(
                row["name"],
                (row["seconds"], row["stsb"]),
                place,
                textcoords="offset points",
                ha=side,
                fontsize=8.5,
                color=INK,
            )
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
            if place != PLACES[-1]:
                text.remove()
        taken.append(box)


def main() -> None:
    """Draw and write."""
    draw(newest("systems")).savefig(LAB / "systems.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
