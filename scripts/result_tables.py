"""Put the newest benchmark results and the scores of our models into README and docs, between marks that name them.

    python scripts/result_tables.py [--check]

A place looks like ``<!-- results: encode -->`` ... ``<!-- end -->``. With --check nothing is written; the exit code
says whether a page is behind its results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_tables as benchmarks
import model_tables as models
from result_markdown import fill_pages

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
MODELS = ROOT / "docs/models"
LAB = ROOT / "docs/lab"
PLACE = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def newest(name: str) -> dict[str, Any]:
    """The latest result file of a benchmark, as dates sort as text; or the file of that name beside models or plots."""
    for folder in (MODELS, LAB):
        if (folder / f"{name}.json").is_file():
            content: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            return content
    result: dict[str, Any] = json.loads(sorted(RESULTS.glob(f"*-{name}.json"))[-1].read_text(encoding="utf-8"))
    return result


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "train": benchmarks.train,
    "encode": benchmarks.encode,
    "encode-avx2": benchmarks.encode,
    "start": benchmarks.start,
    "memory": benchmarks.memory,
    "limits": benchmarks.limits,
    "static": benchmarks.static,
    "wk": benchmarks.wk,
    "cranfield": benchmarks.cranfield,
    "demo": benchmarks.demo,
    "headline": benchmarks.headline,
    "search": benchmarks.search,
    "index-1000000": benchmarks.index,
    "index-40000000": benchmarks.index,
    "kill_bulk": benchmarks.kill_bulk,
    "kill_collection": benchmarks.kill_collection,
    "kill_train": benchmarks.kill_train,
    "scores": models.scores,
    "tried": models.averages,
    "seeds": models.averages,
    "texts": models.texts,
    "frontier": models.frontier,
    "layers": models.layers,
    "words": models.words,
    "sweeps": models.sweeps,
    "wk_scores": models.wk_scores,
}

SOURCES = {"headline": "demo"}  # blocks that show another benchmark's result; all others have a result of their name


def rendered(page: str) -> str:
    """A page with all its places filled."""
    return PLACE.sub(lambda found: f"{found[1]}{shown(found[2])}\n{found[3]}", page)


def shown(name: str) -> str:
    """The newest result behind a block, as the block shows it."""
    return RENDERERS[name](newest(SOURCES.get(name, name)))


def main(check: bool) -> int:
    """Fill all pages, or say which are behind."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(MODELS.glob("*.md"))]
    return fill_pages(pages, rendered, check=check)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
