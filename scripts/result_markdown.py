"""Markdown tables of results, as README and docs show them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["fill_pages", "table", "where"]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def where(result: dict[str, Any]) -> str:
    """On what machine, from what commit and file a result came."""
    machine = result["machine"]
    abilities = ", ".join(machine["abilities"]) or "no vector extensions listed"
    return f"*{machine['processor']}, {machine['cores']} cores ({abilities}); commit {result['commit']}.*"


def fill_pages(pages: Iterable[Path], rendered: Callable[[str], str], *, check: bool) -> int:
    """Write every page as it is ``rendered``; with ``check`` only name those that are behind. Returns the exit code."""
    behind = []
    for path in pages:
        page = path.read_text(encoding="utf-8")
        if rendered(page) != page:
            behind.append(path.name)
            if not check:
                path.write_text(rendered(page), encoding="utf-8")
    if check and behind:
        print(f"behind their results: {', '.join(behind)}; run make docs", file=sys.stderr)
    return int(check and bool(behind))
