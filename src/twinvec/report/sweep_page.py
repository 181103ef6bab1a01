"""The pooling lab's report: a page with the heat map and all readings, the heat map, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from twinvec.lab.sweep import PROTOCOL, Judged, Sweep
from twinvec.lab.verdict import advice, as_dict, verdict
from twinvec.report.document import document
from twinvec.report.folder import picture, table, write_folder
from twinvec.report.svg import element
from twinvec.report.sweep_plots import draw_sweep

__all__ = ["STARRED", "SWEEP_DATA", "sweep_html", "sweep_row", "write_sweep_report"]

SWEEP_DATA = "sweep.json"
SWEEP_PLOT = "sweep.png"
HEADS = [
    ("reading", ""),
    ("score", "number"),
    ("95 % interval", "number"),
    ("lead", "number"),
    ("p", "number"),
]
ABOUT_TABLE = (
    "Lead: over the model's own reading. p: of a lead as high by chance, corrected for all readings. Intervals: each "
    "reading alone, from bootstrap resamples of the pairs."
)
STARRED = "* cannot be saved as a model folder"


def write_sweep_report(sweep: Sweep, target: Path, *, replace: bool = False) -> None:
    """Write ``report.html``, ``sweep.json`` and ``sweep.png`` into a folder, all or none."""
    plot = draw_sweep(sweep)
    page, data = sweep_html(sweep, plot), (SWEEP_DATA, as_dict(sweep))
    write_folder(target, page=page, files={SWEEP_PLOT: plot}, data=data, replace=replace)


def sweep_html(sweep: Sweep, plot: bytes) -> str:
    """The whole page."""
    return document(f"Readings of {sweep.model}", _parts(sweep, plot))


def _parts(sweep: Sweep, plot: bytes) -> Iterator[str]:
    yield element("p", "Pooling lab", class_="eyebrow")
    yield element("h1", escape(sweep.model))
    yield element("p", escape(verdict(sweep)), class_="lead")
    told = f"{PROTOCOL} on the {sweep.n_pairs:,} pairs of {sweep.source}, {sweep.n_texts:,} different texts."
    for sentence in (told, *advice(sweep)):
        yield element("p", escape(sentence), class_="note")
    yield picture(plot, "Scores of all readings")
    yield element("h2", "All readings")
    yield element("p", ABOUT_TABLE, class_="note")
    undefined = [each for each in sweep.judged if each.value is None]
    yield table(HEADS, [sweep_row(sweep, each) for each in (*sweep.ranked, *undefined)])
    yield element("p", f"{STARRED}.", class_="note")


def sweep_row(sweep: Sweep, judged: Judged) -> list[str]:
    """Name, score, interval, lead, corrected p; a star where it cannot be saved."""
    is_own = judged is sweep.own
    name = judged.candidate.name + " (the model's own)" * is_own + " *" * bool(judged.why_not_saved)
    if judged.value is None or judged.interval is None or judged.lead is None:
        return [f"{name}: {judged.problem}", "undefined", "", "", ""]
    return [
        name,
        f"{judged.value:.2f}",
        f"{judged.interval.low:.2f} to {judged.interval.high:.2f}",
        "" if is_own else f"{judged.lead.difference:+.2f}",
        "" if is_own else f"{judged.lead.p:.3f}",
    ]
