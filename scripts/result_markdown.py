"""Markdown tables of results, as README and docs show them."""

from __future__ import annotations

from typing import Any

__all__ = ["table", "where"]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def where(result: dict[str, Any]) -> str:
    """On what machine, from what commit and file a result came."""
    machine = result["machine"]
    abilities = ", ".join(machine["abilities"]) or "no vector extensions listed"
    return f"*{machine['processor']}, {machine['cores']} cores ({abilities}); commit {result['commit']}.*"
