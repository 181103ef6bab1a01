"""HTML and SVG for every report: elements, style sheet, page frame, number formats, report folders."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from twinvec.errors import InputError
from twinvec.evaluation.result_file import Evaluation, Result, Subset
from twinvec.extras import require
from twinvec.files import check_free, is_taken, new_folder, write_json
from twinvec.ownership import FolderKind
from twinvec.report.fonts import PAGE_FONTS

__all__ = [
    "PAGE",
    "Scale",
    "check_folder",
    "document",
    "drawing_file",
    "element",
    "facts",
    "figure",
    "number",
    "picture",
    "protocols",
    "show_interval",
    "show_value",
    "slug",
    "table",
    "text",
    "write_folder",
]


def number(value: float) -> str:
    """Format a coordinate with at most two decimals.

    >>> number(12.0), number(3.14159)
    ('12', '3.14')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, *content: str, **attributes: object) -> str:
    """An element; content is markup, attributes are escaped. ``class_`` becomes class, ``stroke_width`` stroke-width.

    >>> element("rect", x=1.5, class_="bar")
    '<rect x="1.5" class="bar"></rect>'
    """
    pairs = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else str(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{''.join(content)}</{name}>"


def text(content: str, x: float, y: float, *, class_: str = "label", anchor: str = "start") -> str:
    """An SVG line of text at a position."""
    return element("text", escape(content), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def figure(content: str, *, width: float, height: float, label: str) -> str:
    """An SVG drawing that scales with the page, with a label for screen readers."""
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", content, viewBox=box, role="img", aria_label=label, preserveAspectRatio="xMinYMin meet")


NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def drawing_file(drawing: str) -> bytes:
    """The content of an SVG file with a drawing of :func:`figure` and the style of the pages."""
    extra = f"svg {{ background: var(--card); font-family: {PAGE_FONTS}; }}"
    start, rest = NOT_XML.sub("\ufffd", drawing).split(">", 1)
    return f'{start} xmlns="http://www.w3.org/2000/svg">{element("style", STYLE, extra)}{rest}\n'.encode()


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps numbers from ``low`` to ``high`` to positions from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a number.

        >>> Scale(0, 100, 10, 30)(50)
        20.0
        """
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, step: float) -> list[float]:
        """Multiples of ``step`` within the scale."""
        first, last = -(-self.low // step), self.high // step
        return [step * i for i in range(int(first), int(last) + 1)]


def show_value(result: Result | Subset) -> str:
    """The score with two decimals, or "undefined".

    >>> show_value(Subset("news", 20, 77.034)), show_value(Subset("news", 20, None, "all values are equal"))
    ('77.03', 'undefined')
    """
    return "undefined" if result.value is None else f"{result.value:.2f}"


def show_interval(result: Result) -> str:
    """The 95 % interval; empty if there is none."""
    return "" if result.low is None or result.high is None else f"{result.low:.2f} to {result.high:.2f}"


def protocols(evaluation: Evaluation) -> dict[str, list[Result]]:
    """The results by protocol, in order of first appearance."""
    by_protocol: dict[str, list[Result]] = {}
    for result in evaluation.results:
        by_protocol.setdefault(result.protocol, []).append(result)
    return by_protocol


def facts(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield labels and values of the metadata of an evaluation."""
    yield "model", evaluation.system
    if evaluation.settings:
        yield "settings", ", ".join(f"{name}={value}" for name, value in evaluation.settings.items())
    yield "date", evaluation.date.replace("T", " ").replace("Z", " UTC")
    yield "versions", ", ".join(f"{name} {value}" for name, value in evaluation.versions.items())
    yield "identity", evaluation.identity


STYLE = """
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1b1f24; --soft: #5c6570; --faint: #8b949e; --line: #e4e6e8;
  --grid: #eceef0; --bar: #3b6ea8; --mark: #14263b; --bad: #a3402f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1b1f25; --ink: #e8eaed; --soft: #a9b1ba; --faint: #7d8690; --line: #2d333b;
    --grid: #272d35; --bar: #5b93d1; --mark: #f0f4f8; --bad: #e58a78;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 "Inter", -apple-system, BlinkMacSystemFont, FONTS;
  font-feature-settings: "tnum"; font-variant-numeric: tabular-nums; -webkit-font-smoothing: antialiased;
}
main { max-width: 1080px; margin: 0 auto; padding: 56px 40px 72px; }
.eyebrow { font-size: 12px; letter-spacing: .12em; text-transform: uppercase; color: var(--soft); margin: 0 0 8px; }
h1 { font-size: 34px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 21px; font-weight: 620; letter-spacing: -.01em; margin: 52px 0 2px; }
h3 { font-size: 15px; font-weight: 620; margin: 0; color: var(--ink); }
p { margin: 6px 0; }
.lead, .note { color: var(--soft); max-width: 80ch; }
.note { font-size: 13.5px; max-width: 110ch; }
.problem { color: var(--bad); fill: var(--bad); font-size: 14px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 16px; margin-top: 28px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 22px; }
.tile .number { font-size: 38px; line-height: 1.1; font-weight: 640; letter-spacing: -.02em; margin: 0; }
.tile .what { font-weight: 560; margin: 8px 0 0; }
.tile .how { font-size: 13px; color: var(--soft); margin: 2px 0 0; }
.chart { margin-top: 14px; padding: 22px 24px 12px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 16px; margin-top: 14px; }
figure { margin: 0; }
figcaption { font-size: 13px; color: var(--soft); margin-bottom: 10px; }
svg { display: block; width: 100%; height: auto; font-family: inherit; }
.name { font-size: 14.5px; font-weight: 560; fill: var(--ink); }
.value { font-size: 14.5px; font-weight: 640; fill: var(--ink); }
.range, .tick { font-size: 12.5px; fill: var(--faint); }
.axis { font-size: 12.5px; fill: var(--soft); }
.small, .smallvalue { font-size: 13px; fill: var(--soft); }
.smallvalue { font-weight: 600; fill: var(--ink); }
.bar { fill: var(--bar); opacity: .85; }
.cell { fill: var(--bar); }
.median { fill: none; stroke: var(--mark); stroke-width: 1.8; stroke-linejoin: round; }
.dot { fill: var(--bar); fill-opacity: .55; }
.grid { stroke: var(--grid); stroke-width: 1; }
.zero { stroke: var(--faint); stroke-width: 1; }
.interval { stroke: var(--mark); stroke-width: 1.6; }
.against { fill: var(--bad); }
.words { line-height: 2.1; font-size: 17px; margin-top: 12px; }
.words span { padding: 3px 5px; border-radius: 5px; margin-right: 3px; white-space: nowrap; }
.mapname {
  font-size: 14px; font-weight: 620; fill: var(--ink); paint-order: stroke; stroke: var(--card); stroke-width: 3.5px;
}
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 5px; margin-right: 8px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin-top: 14px; }
th { text-align: left; font-weight: 560; color: var(--soft); font-size: 13px; }
th, td { padding: 8px 14px 8px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
.facts { margin-top: 14px; font-size: 14px; }
.facts th { width: 110px; font-weight: 500; }
.facts td { overflow-wrap: anywhere; }
@media (max-width: 640px) { main { padding: 32px 18px 48px; } .pair { grid-template-columns: 1fr; } }
@media print { main { padding: 0; } .card { break-inside: avoid; } h2 { break-after: avoid; } }
""".replace("FONTS", PAGE_FONTS)


def document(title: str, parts: Iterable[str]) -> str:
    """An HTML page; ``parts`` are markup."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', escape(title))}<style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{element("main", *parts)}</body></html>\n'


PAGE = "report.html"
PLOTTED = "layers.json", "sweep.json"  # data files of the reports with matplotlib plots


def check_folder(target: Path, *, data: str, replace: bool) -> None:
    """Refuse a folder that must not be replaced, before any work starts; only a report with ``data`` may be replaced.

    Also checks that matplotlib is installed if the report has plots.
    """
    if data in PLOTTED:
        require("matplotlib", extra="eval", feature="Drawing plots")
    if is_taken(target) and not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or replace it with --force.")
    check_free(target, _kind(data), replace=replace)


def _kind(data: str) -> FolderKind:
    return FolderKind(f"twinvec-report-1 {data}", f"a report with {data}")


def write_folder(
    target: Path, *, page: str, files: Mapping[str, bytes], data: tuple[str, dict[str, Any]], replace: bool
) -> None:
    """Write the page, ``files``, and ``data`` (file name and content) into a folder, all or none."""
    check_folder(target, data=data[0], replace=replace)
    with new_folder(target, _kind(data[0]), replace=replace) as folder:
        (folder / PAGE).write_text(page, encoding="utf-8")
        for name, content in files.items():
            (folder / name).write_bytes(content)
        write_json(folder / data[0], data[1])


def slug(name: str) -> str:
    """A name as part of a file name.

    >>> slug("sentence-transformers/all MiniLM")
    'sentence-transformers-all-MiniLM'
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "model"


def picture(content: bytes, label: str) -> str:
    """An embedded PNG, with a label for screen readers."""
    source = f"data:image/png;base64,{b64encode(content).decode()}"
    image = element("img", src=source, alt=label, style="display: block; max-width: 100%; height: auto")
    return element("figure", image, class_="card chart", style="background: #ffffff")  # plots have no dark theme


def table(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """A table; each head has the class of its column, "number" or empty."""
    lines = [element("tr", *(element("th", escape(name), class_=kind) for name, kind in heads))]
    for row in rows:
        cells = [element("td", escape(cell), class_=kind) for cell, (_, kind) in zip(row, heads, strict=True)]
        lines.append(element("tr", *cells))
    return element("div", element("table", *lines), class_="wide")
