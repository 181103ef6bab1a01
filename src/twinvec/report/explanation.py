"""An HTML page that explains a similarity: tokens shaded by contribution, and all pairs of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from twinvec.explanation import PairExplanation
from twinvec.progress import columns_of
from twinvec.report.html import document, element, figure, table, text
from twinvec.types import Array

__all__ = ["explanation_html"]

CELL, NAME_WIDTH, ROTATED_HEIGHT = 30, 7.4, 0.72  # pixels of a cell and of a letter; height of a rotated name / width
MIN_WIDTH = 420  # keeps the cells of a small map small
HOW = (
    "A vector is a sum over its tokens, so the cosine is a sum over all pairs of tokens. A token's contribution is the "
    "sum of its pairs. The contributions of each text add up to the cosine."
)
MAP = "Rows are tokens of A, columns are tokens of B. Darker cells contribute more; red cells lower the cosine."
WEIGHT = "Weight: the token's share of its text's vector."


def explanation_html(pair: PairExplanation) -> str:
    """The HTML page of an explained pair."""
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
    """The tokens of a text, each with a background as strong as its contribution."""
    spans = []
    for token, share in zip(tokens, shares.tolist(), strict=True):
        percent = round(75 * abs(share) / largest) if largest else 0
        style = f"background: color-mix(in srgb, var(--{'bar' if share >= 0 else 'bad'}) {percent}%, transparent)"
        spans.append(element("span", escape(token), style=style, title=f"{share:.4f}"))
    return " ".join(spans)


def _map(pair: PairExplanation) -> str:
    """All pairs of tokens as cells: tokens of A in rows, of B in columns."""
    values = pair.contributions
    largest = float(np.abs(values).max()) or 1.0
    left = 14 + NAME_WIDTH * max(map(columns_of, pair.left.tokens))
    top = 14 + NAME_WIDTH * ROTATED_HEIGHT * max(map(columns_of, pair.right.tokens))
    drawn = [
        text(token, left - 8, top + CELL * (row + 0.5) + 5, class_="small", anchor="end")
        for row, token in enumerate(pair.left.tokens)
    ]
    for column, token in enumerate(pair.right.tokens):
        transform = f"translate({left + CELL * (column + 0.5):.1f} {top - 8:.1f}) rotate(-45)"
        drawn.append(element("text", escape(token), class_="small", transform=transform))
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
    # the rotated names of the last columns extend beyond their cells by ``top``
    width, height = max(left + CELL * values.shape[1] + top, MIN_WIDTH), top + CELL * values.shape[0]
    svg = figure("".join(drawn), width=width, height=height, label="Contributions of pairs of tokens")
    return element("div", svg, style=f"max-width: {width:.0f}px")


def _table(pair: PairExplanation) -> str:
    heads = [("text", ""), ("token", ""), ("weight", "number"), ("contribution", "number")]
    rows = [
        [name, token, f"{weight:.4f}", f"{share:.4f}"]
        for name, side, shares in (("A", pair.left, pair.of_left), ("B", pair.right, pair.of_right))
        for token, weight, share in zip(side.tokens, side.importance, shares, strict=True)
    ]
    return table(heads, rows)
