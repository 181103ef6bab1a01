"""A folder of a report: one HTML page that needs no other file, its plots, and all numbers as JSON."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.files import check_free, is_taken, new_folder, write_json
from twinvec.ownership import FolderKind
from twinvec.report.svg import element

__all__ = ["PAGE", "check_folder", "picture", "slug", "table", "write_folder"]

PAGE = "report.html"


def check_folder(target: Path, *, data: str, replace: bool) -> None:
    """Refuse, before any work is done, a folder that must not be replaced: any other than a report with ``data``.

    Also refuses to begin where nothing could be drawn.
    """
    require("matplotlib", extra="eval", feature="Drawing plots")
    if is_taken(target) and not replace:
        raise InputError(f"{target} exists already.", hint="Choose another name, or replace it with --force.")
    check_free(target, _kind(data), replace=replace)


def _kind(data: str) -> FolderKind:
    return FolderKind(f"twinvec-report-1 {data}", f"a report with {data}")


def write_folder(
    target: Path, *, page: str, files: Mapping[str, bytes], data: tuple[str, dict[str, Any]], replace: bool
) -> None:
    """Write the page, ``files`` beside it, and the numbers (``data``: their file and what it holds), or nothing."""
    check_folder(target, data=data[0], replace=replace)
    with new_folder(target, _kind(data[0]), replace=replace) as place:
        (place / PAGE).write_text(page, encoding="utf-8")
        for name, content in files.items():
            (place / name).write_bytes(content)
        write_json(place / data[0], data[1])


def slug(name: str) -> str:
    """A name as part of a file's name.

    >>> slug("sentence-transformers/all MiniLM")
    'sentence-transformers-all-MiniLM'
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "model"


def picture(content: bytes, label: str) -> str:
    """A PNG inside the page, with a label for those who cannot see it."""
    source = f"data:image/png;base64,{b64encode(content).decode()}"
    style = "display: block; max-width: 100%; height: auto"
    ground = "background: #ffffff"  # the plots are for a light page
    return element("figure", element("img", src=source, alt=label, style=style), class_="card chart", style=ground)


def table(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """A table; each head with the class of its column, "number" or none."""
    shown = [element("tr", *(element("th", escape(name), class_=kind) for name, kind in heads))]
    for row in rows:
        cells = [element("td", escape(cell), class_=kind) for cell, (_, kind) in zip(row, heads, strict=True)]
        shown.append(element("tr", *cells))
    return element("div", element("table", *shown), class_="wide")
