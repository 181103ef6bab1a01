"""Why two texts are similar, as one HTML page: their tokens, shaded by contribution, and all pairs of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from twinvec.explanation import PairExplanation
from twinvec.report.html import document, element, figure, table, text
from twinvec.types import Array

__all__ = ["explanation_html"]

CELL, NAME_WIDTH, TURNED_HEIGHT = 30, 7.4, 0.72  # pixels; of a letter; rows of a turned name by its width
MIN_WIDTH = 420  # a small map is not blown up beyond this
HOW = (
    "A vector is a sum over its tokens, so the cosine is a sum over all pairs of tokens, and what a token "
    "contributes is the sum of its pairs. On each side the contributions add up to the cosine."
)
MAP = "Rows are tokens of A, columns of B. Fuller cells contribute more; red ones pull the two texts apart."
WEIGHT = "Weight: the token's share in its text's vector."


def explanation_html(pair: PairExplanation) -> str:
    """The whole page."""
    return document("Why two texts are similar", _parts(pair))


def _parts(pair: PairExplanation) -> Iterator[str]:
    yield element("p", "Why are these two similar?", class_="eyebrow")
    yield element("h1", f"Cosine {pair.cosine:.3f}")
    yield element("p", HOW, class_="lead")
    largest = max((float(np.abs(each).max()) for each in (pair.of_left, pair.of_right) if each.size), default=0.0)
    for name, side, shares in (("A", pair.left, pair.of_left), ("B", pair.right, pair.of_right)):
        yield element("h2", f"Text {name}")
        yield element("p", escape(side.text) or "(empty)", class_="note")
        yield element("div", _strip(side.tokens, shares, largest), class_="card words")
    if pair.contributions.size:
        yield element("h2", "Token by token")
        yield element("p", MAP, class_="note")
        yield element("figure", _map(pair), class_="card chart")
    yield element("h2", "All numbers")
    yield element("p", WEIGHT, class_="note")
    yield _table(pair)


def _strip(tokens: Sequence[str], shares: Array, largest: float) -> str:
    """The tokens in a row, each on a ground as full as its contribution."""
    spans = []
    for token, share in zip(tokens, shares.tolist(), strict=True):
        percent = round(75 * abs(share) / largest) if largest else 0
        ground = f"background: color-mix(in srgb, var(--{'bar' if share >= 0 else 'bad'}) {percent}%, transparent)"
        spans.append(element("span", escape(token), style=ground, title=f"{share:.4f}"))
    return " ".join(spans)


def _map(pair: PairExplanation) -> str:
    """All pairs of tokens as cells, those of A in rows, of B in columns."""
    values = pair.contributions
    largest = float(np.abs(values).max()) or 1.0
    left = 14 + NAME_WIDTH * max(map(len, pair.left.tokens))
    top = 14 + NAME_WIDTH * TURNED_HEIGHT * max(map(len, pair.right.tokens))
    drawn = [
        text(token, left - 8, top + CELL * (row + 0.5) + 5, class_="small", anchor="end")
        for row, token in enumerate(pair.left.tokens)
    ]
    for column, token in enumerate(pair.right.tokens):
        x, y = left + CELL * (column + 0.5), top - 8
        turned = element("text", escape(token), class_="small", transform=f"translate({x:.1f} {y:.1f}) rotate(-45)")
        drawn.append(turned)
    for (row, column), value in np.ndenumerate(values):
        tip = f"{pair.left.tokens[row]} and {pair.right.tokens[column]}: {value:.4f}"
        drawn.append(
            element(
                "rect",
                element("title", escape(tip)),
                x=left + CELL * column,
                y=top + CELL * row,
                width=CELL - 2,
                height=CELL - 2,
                rx=3,
                class_="cell" if value >= 0 else "against",
                fill_opacity=float(max(abs(value) / largest, 0.02)),
            )
        )
    # the last columns' turned names reach to the right of their cells
    width = left + CELL * values.shape[1] + top
    height = top + CELL * values.shape[0]
    shown = figure("".join(drawn), width=max(width, MIN_WIDTH), height=height, label="Contributions of pairs of tokens")
    return element("div", shown, style=f"max-width: {max(width, MIN_WIDTH):.0f}px")


def _table(pair: PairExplanation) -> str:
    heads = [("text", ""), ("token", ""), ("weight", "number"), ("contribution", "number")]
    rows = [
        [name, token, f"{weight:.4f}", f"{share:.4f}"]
        for name, side, shares in (("A", pair.left, pair.of_left), ("B", pair.right, pair.of_right))
        for token, weight, share in zip(side.tokens, side.importance, shares, strict=True)
    ]
    return table(heads, rows)
