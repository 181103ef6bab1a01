"""An evaluation as one HTML page that needs nothing else: no script, no font, no request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from twinvec.evaluate.result import Evaluation, Result
from twinvec.report.bars import score_bars, subset_bars
from twinvec.report.density import density_plot
from twinvec.report.document import document
from twinvec.report.svg import element
from twinvec.report.words import facts, protocols, show_interval, show_value

__all__ = ["as_html"]

CORRELATIONS = "spearman", "pearson"
SHADES = "Cells are fuller where more pairs lie, on a logarithmic scale; the line joins the columns' medians."
INTERVALS = "Thin lines are 95 % intervals, from bootstrap resamples of the items."


def as_html(evaluation: Evaluation) -> str:
    """The whole page."""
    return document(f"Evaluation of {evaluation.subject}", _parts(evaluation))


def _parts(evaluation: Evaluation) -> Iterator[str]:
    day = evaluation.date.partition("T")[0]
    tasks = list(dict.fromkeys(result.task for result in evaluation.results))
    yield element("p", f"Evaluation report · {escape(day)}", class_="eyebrow")
    yield element("h1", escape(evaluation.subject))
    count = f"{len(tasks)} task{'s' * (len(tasks) != 1)}: {', '.join(tasks)}."
    yield element("p", escape(count), class_="lead")
    yield _tiles(evaluation)
    by_protocol = protocols(evaluation)
    alone: dict[str, list[Result]] = {}  # by task, what no other task shares its protocol with
    for protocol, results in by_protocol.items():
        if len(results) > 1:
            yield from _scores(protocol, results, [result.task for result in results])
        else:
            alone.setdefault(results[0].task, []).append(results[0])
    for task, results in alone.items():
        yield from _scores(task, results, [result.protocol.partition(", ")[0] for result in results])
    drawn = {(r.task, r.outcome.predicted.tobytes()): r for r in reversed(evaluation.results) if _has_plot(r)}
    yield from _agreement(list(reversed(drawn.values())))  # two statistics of the same predictions are drawn once
    yield from _subsets([result for result in evaluation.results if len(result.subsets) > 1])
    yield element("h2", "All numbers")
    yield _numbers(evaluation.results)
    yield element("h2", "How this was measured")
    told = [(escape(label), escape(value)) for label, value in facts(evaluation)]
    rows = [element("tr", element("th", label), element("td", value)) for label, value in told]
    yield element("table", *rows, class_="facts")


def _tiles(evaluation: Evaluation) -> str:
    """The mean of the tasks under each protocol that has several, and the first number of every other task."""
    tiles: list[str] = []
    told: set[str] = set()
    for protocol, results in protocols(evaluation).items():
        values = [result.value for result in results if result.value is not None]
        if not values or (len(results) == 1 and results[0].task in told):
            continue
        told.update(result.task for result in results)
        names = ", ".join(result.task for result in results)
        what = names if len(results) == 1 else f"mean of {names if len(results) < 5 else f'{len(values)} tasks'}"
        parts = [("number", f"{sum(values) / len(values):.2f}"), ("what", what), ("how", protocol)]
        tiles.append(element("div", *(element("p", escape(t), class_=c) for c, t in parts), class_="card tile"))
    return element("div", *tiles[:6], class_="tiles")


def _scores(title: str, results: Sequence[Result], names: Sequence[str]) -> Iterator[str]:
    """A chart; what its bars are not named by (the task or the protocol) is its title, or told below it."""
    yield element("h2", escape(title))
    yield element("p", INTERVALS, class_="note")
    told = [result.protocol for result in results if result.protocol not in (title, *names)]
    drawing = score_bars(results, names, label=f"Scores: {title}")
    yield _card(drawing, class_="card chart")
    if told:
        yield element("p", escape("; ".join(told) + "."), class_="note")
    for result in results:
        if result.problem:
            yield element("p", escape(f"{result.task}: {result.problem}"), class_="problem")


def _has_plot(result: Result) -> bool:
    return result.outcome.gold is not None and result.outcome.statistic in CORRELATIONS and result.n > 1


def _agreement(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        return
    yield element("h2", "Predicted against gold")
    yield element("p", SHADES, class_="note")
    yield element("div", *(_card(density_plot(r), caption=_caption(r)) for r in results), class_="pair")


def _subsets(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        return
    yield element("h2", "Subsets")
    yield element("p", "The same measure within each subset alone; n is its number of items.", class_="note")
    drawn = [_card(subset_bars(r.subsets, label=f"Subsets of {r.task}"), caption=_caption(r)) for r in results]
    yield element("div", *drawn, class_="pair")


def _caption(result: Result) -> str:
    return f"{element('h3', escape(result.task))}{escape(f'{show_value(result)} · {result.protocol}')}"


def _card(drawing: str, *, caption: str = "", class_: str = "card") -> str:
    told = element("figcaption", caption) if caption else ""
    return element("figure", told, drawing, class_=class_)


def _numbers(results: Sequence[Result]) -> str:
    heads = [("task", ""), ("score", "number"), ("95 % interval", "number"), ("items", "number"), ("protocol", "")]
    rows = [element("tr", *(element("th", name, class_=kind) for name, kind in heads))]
    for result in results:
        cells = [result.task, show_value(result), show_interval(result), f"{result.n:,}", result.protocol]
        rows.append(
            element("tr", *(element("td", escape(c), class_=k) for c, (_, k) in zip(cells, heads, strict=True)))
        )
    return element("div", element("table", *rows), class_="wide")
