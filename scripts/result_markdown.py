"""Markdown tables, and pages that contain generated blocks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["cells", "fill_pages", "show_time", "table", "where"]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is left-aligned, the others are right-aligned."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells(rows: Iterable[dict[str, Any]], formats: dict[str, str]) -> list[list[str]]:
    """The formatted values of each row, by key; None becomes an empty cell.

    >>> cells([{"name": "a", "seconds": 1.234, "mb": None}], {"name": "", "seconds": ".2f", "mb": ",.0f"})
    [['a', '1.23', '']]
    """
    return [["" if row[key] is None else format(row[key], spec) for key, spec in formats.items()] for row in rows]


def where(result: dict[str, Any]) -> str:
    """The machine and the commit of a result."""
    machine = result["machine"]
    abilities = ", ".join(machine["abilities"]) or "no vector extensions listed"
    return f"*{machine['processor']}, {machine['cores']} cores ({abilities}); commit {result['commit']}.*"


def fill_pages(pages: Iterable[Path], rendered: Callable[[str], str], *, check: bool) -> int:
    """Write every page as ``rendered``; with ``check``, only name those that are out of date. Returns the exit code."""
    outdated = []
    for path in pages:
        page = path.read_text(encoding="utf-8")
        if rendered(page) != page:
            outdated.append(path.name)
            if not check:
                path.write_text(rendered(page), encoding="utf-8")
    if check and outdated:
        print(f"out of date: {', '.join(outdated)}; run make docs", file=sys.stderr)
    return int(check and bool(outdated))


def show_time(seconds: float) -> str:
    """A duration in a suitable unit.

    >>> show_time(0.02), show_time(90), show_time(5400), show_time(200000), show_time(1e10)
    ('20 ms', '90 s', '90 min', '2.3 days', '317 years')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    for unit, size, limit in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48), ("days", 86400, 730)):
        if seconds < limit * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds / (365.25 * 86400):,.0f} years"
