"""Draw docs/lab/systems.svg: quality and time of every kind of system, from the newest result of benchmarks/systems.py.

python scripts/system_figure.py
"""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from result_markdown import show_time
from result_tables import LAB, newest

INK, FAINT = "#334155", "#94a3b8"
COLORS = {"embeds": "#2563eb", "scores": "#c2410c"}
LABELS = {"embeds": "embeds each text once", "scores": "scores each pair"}
TICKS = 1, 10, 60, 600, 3600, 36_000, 360_000
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
        for row in rows:
            where = (row["seconds"], row["stsb"])
            axis.annotate(row["name"], where, (6, 4), textcoords="offset points", fontsize=8.5, color=INK)
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
    axis.set_xticks(TICKS, [show_time(tick) for tick in TICKS])
    axis.minorticks_off()
    axis.set_xlabel(
        f"time to find the most similar pair of {result['n_texts']:,} sentences, {result['machine']['cores']} CPU cores"
    )
    axis.set_ylabel("STS benchmark, test: Spearman x 100")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#e2e8f0", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(frameon=False, loc="lower right")
    return figure


def main() -> None:
    """Draw and write."""
    draw(newest("systems")).savefig(LAB / "systems.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
