"""The report of a sweep: a page with a heat map and a table of all readouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.analysis.readouts import Candidate, Readout
from twinvec.analysis.sweep_result import PROTOCOL, Scored, Sweep
from twinvec.report.html import document, element, picture, table, write_folder
from twinvec.report.plots import INK, SOFT, draw_cells, new_figure, plain, png_of
from twinvec.wk import WKSettings

__all__ = ["STARRED", "SWEEP_DATA", "draw_sweep", "sweep_row", "write_sweep_report"]

OWN, BEST = "#d97706", "#dc2626"
KINDS = {False: "not whitened", True: "whitened"}
LOW_QUANTILE = 0.15  # start of the color scale: a few very low scores would make all others the same color


@dataclass(frozen=True)
class _Panel:
    """The cells of one heat map, row by row, with the names of rows and columns."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Candidate]]
    x_label: str = ""


def draw_sweep(sweep: Sweep) -> bytes:
    """Plot the scores of all readouts: poolings by layers, and settings of SBERT-WK, whitened or not."""
    panels = [*_pooling_panels(sweep), *_wk_panels(sweep)]
    heights = [0.36 * len(panel.rows) + (1.0 if panel.x_label else 0.55) for panel in panels]
    n_columns = max(len(panel.columns) for panel in panels)
    figure = new_figure(2.6 + 0.56 * max(n_columns, 10), 1.1 + sum(heights))
    axes = figure.subplots(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
    values = [each.value for each in sweep.ranked if each.value is not None]
    bounds = float(np.quantile(values, LOW_QUANTILE)), max(values)
    scores = {each.candidate: each.value for each in sweep.scored}
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel, scores, bounds)
        _mark(axis, panel, sweep)
    title = f"{sweep.model} on the {sweep.n_pairs:,} pairs of {sweep.source}: {PROTOCOL}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    _explain_marks(figure)
    return png_of(figure)


def _pooling_panels(sweep: Sweep) -> list[_Panel]:
    readouts = list(dict.fromkeys(each.candidate.readout for each in sweep.scored if each.candidate.readout.wk is None))
    poolings = list(dict.fromkeys(readout.modes for readout in readouts))
    sets = sorted({readout.layers for readout in readouts}, key=lambda layers: (len(layers) > 1, len(layers), layers))
    return [
        _Panel(
            title=f"Pooled layers, {KINDS[is_whitened]}",
            rows=["+".join(modes) for modes in poolings],
            columns=[_layers(layers) for layers in sets],
            cells=[[Candidate(Readout(modes, layers), is_whitened) for layers in sets] for modes in poolings],
            x_label="layer (0: embeddings), or the mean of several",
        )
        for is_whitened in _kinds(sweep)
        if poolings
    ]


def _layers(layers: tuple[int, ...]) -> str:
    return str(layers[0]) if len(layers) == 1 else f"{layers[0]}+{layers[1]}" if len(layers) == 2 else "all"


def _wk_panels(sweep: Sweep) -> list[_Panel]:
    settings = [each.candidate.readout.wk for each in sweep.scored if each.candidate.readout.wk is not None]
    choices = list(dict.fromkeys(settings))
    if not choices:
        return []
    default = choices[0]
    kinds = _kinds(sweep)
    return [
        _Panel(
            title=f"SBERT-WK; default: {Readout(wk=default).name.removeprefix('wk ')}",
            rows=[KINDS[is_whitened] for is_whitened in kinds],
            columns=["default", *(_changes(each, default) for each in choices[1:])],
            cells=[[Candidate(Readout(wk=each), is_whitened) for each in choices] for is_whitened in kinds],
        )
    ]


def _changes(settings: WKSettings, default: WKSettings) -> str:
    """The differences from the default settings, as a short label."""
    formats = {"mode": "{}", "layer_start": "from {}", "window": "window {}", "omega": "omega {:g}"}
    changed = [name for name in formats if getattr(settings, name) != getattr(default, name)]
    return "\n".join(formats[name].format(getattr(settings, name)) for name in changed)


def _kinds(sweep: Sweep) -> list[bool]:
    return sorted({each.candidate.is_whitened for each in sweep.scored})


def _draw_panel(
    axis: Any,  # noqa: ANN401 - matplotlib's
    panel: _Panel,
    scores: dict[Candidate, float | None],
    bounds: tuple[float, float],
) -> None:
    found = [[scores.get(cell) for cell in row] for row in panel.cells]
    values = np.array([[np.nan if value is None else value for value in row] for row in found])
    draw_cells(axis, values, bounds=bounds, shown=[["-" if v is None else f"{v:.1f}" for v in row] for row in found])
    axis.set_xticks(range(len(panel.columns)), panel.columns, fontsize=9)
    axis.set_yticks(range(len(panel.rows)), panel.rows, fontsize=9)
    axis.set_xlabel(panel.x_label, color=SOFT, fontsize=9)
    plain(axis, panel.title, grid=None)
    axis.spines[:].set_visible(False)


def _mark(axis: Any, panel: _Panel, sweep: Sweep) -> None:  # noqa: ANN401 - matplotlib's
    """Draw frames around the model's own readout and the best one."""
    from matplotlib.patches import Rectangle

    for candidate, color, inset in ((sweep.own.candidate, OWN, 0.06), (sweep.best.candidate, BEST, 0.02)):
        for y, row in enumerate(panel.cells):
            if candidate in row:
                corner = row.index(candidate) - 0.5 + inset, y - 0.5 + inset
                size = 1 - 2 * inset
                axis.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=color, linewidth=2.2, clip_on=False))


def _explain_marks(figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    from matplotlib.patches import Patch

    frames = [
        Patch(facecolor="none", edgecolor=color, linewidth=2.2, label=label)
        for color, label in ((OWN, "the model's own readout"), (BEST, "highest score"))
    ]
    figure.legend(handles=frames, loc="outside lower left", ncols=2, frameon=False, fontsize=9)


SWEEP_DATA = "sweep.json"
SWEEP_PLOT = "sweep.png"
HEADS = [("readout", ""), ("score", "number"), ("95 % interval", "number"), ("lead", "number"), ("p", "number")]
ABOUT_TABLE = (
    "Lead: over the model's own readout. p: probability of such a lead by chance, corrected for all readouts. "
    "Intervals: for each readout alone, from bootstrap resamples of the pairs."
)
STARRED = "* cannot be saved as a model folder"


def write_sweep_report(sweep: Sweep, target: Path, *, replace: bool = False) -> None:
    """Write ``report.html``, ``sweep.json`` and ``sweep.png`` into a folder, all or none."""
    plot = draw_sweep(sweep)
    page, data = sweep_html(sweep, plot), (SWEEP_DATA, sweep.as_dict())
    write_folder(target, page=page, files={SWEEP_PLOT: plot}, data=data, replace=replace)


def sweep_html(sweep: Sweep, plot: bytes) -> str:
    """The HTML page of a sweep."""
    return document(f"Readouts of {sweep.model}", _parts(sweep, plot))


def _parts(sweep: Sweep, plot: bytes) -> Iterator[str]:
    yield element("p", "Pooling lab", class_="eyebrow")
    yield element("h1", escape(sweep.model))
    yield element("p", escape(sweep.verdict), class_="lead")
    measured = f"{PROTOCOL} on the {sweep.n_pairs:,} pairs of {sweep.source}, {sweep.n_texts:,} distinct texts."
    for sentence in (measured, *sweep.advice):
        yield element("p", escape(sentence), class_="note")
    yield picture(plot, "Scores of all readouts")
    yield element("h2", "All readouts")
    yield element("p", ABOUT_TABLE, class_="note")
    yield table(HEADS, [sweep_row(sweep, each) for each in (*sweep.ranked, *sweep.undefined)])
    yield element("p", f"{STARRED}.", class_="note")


def sweep_row(sweep: Sweep, scored: Scored) -> list[str]:
    """The name, score, interval, lead and corrected p value; a star marks a readout that cannot be saved."""
    is_own = scored is sweep.own
    name = scored.candidate.name + " (the model's own)" * is_own + " *" * bool(scored.why_not_saved)
    if scored.value is None or scored.interval is None or scored.lead is None:
        return [f"{name}: {scored.problem}", "undefined", "", "", ""]
    return [
        name,
        f"{scored.value:.2f}",
        f"{scored.interval.low:.2f} to {scored.interval.high:.2f}",
        "" if is_own else f"{scored.lead.difference:+.2f}",
        "" if is_own else f"{scored.lead.p:.3f}",
    ]
