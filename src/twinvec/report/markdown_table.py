"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["cell", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """The lines of a table; the columns at the places ``right`` are aligned to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('--:' if place in right else '---' for place in range(len(head)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def cell(text: str) -> str:
    """Text that cannot break a table."""
    return " ".join(text.split()).replace("|", "\\|")
