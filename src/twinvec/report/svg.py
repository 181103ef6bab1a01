"""SVG and HTML as text: elements with escaped content, and scales from numbers to places."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

__all__ = ["Scale", "element", "figure", "number", "text"]


def number(value: float) -> str:
    """A coordinate, short.

    >>> number(12.0), number(3.14159)
    ('12', '3.14')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, *content: str, **attributes: object) -> str:
    """An element; content is markup already, attributes are escaped. ``class_`` and ``stroke_width`` lose underscores.

    >>> element("rect", x=1.5, class_="bar")
    '<rect x="1.5" class="bar"></rect>'
    """
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else str(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{given}>{''.join(content)}</{name}>"


def text(shown: str, x: float, y: float, *, class_: str = "label", anchor: str = "start") -> str:
    """A line of text at a place."""
    return element("text", escape(shown), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def figure(content: str, *, width: float, height: float, label: str) -> str:
    """A drawing that scales with the page, with a label for those who cannot see it."""
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", content, viewBox=box, role="img", aria_label=label, preserveAspectRatio="xMinYMin meet")


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from ``low`` to ``high`` to places from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number.

        >>> Scale(0, 100, 10, 30)(50)
        20.0
        """
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, step: float) -> list[float]:
        """Multiples of ``step`` within the scale."""
        first, last = -(-self.low // step), self.high // step
        return [step * place for place in range(int(first), int(last) + 1)]
