"""Update the tables in README and docs from the newest benchmark results and the scores of our models.

    python scripts/result_tables.py [--check]

A table is a block ``<!-- results: encode -->`` ... ``<!-- end -->``. With --check nothing is written, and the exit code
is 1 if a page is out of date.
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
BLOCK = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def newest(name: str) -> dict[str, Any]:
    """The file of this name in docs/models or docs/lab, or else the latest result of this benchmark."""
    own = [file for folder in (MODELS, LAB) if (file := folder / f"{name}.json").is_file()]
    file = own[0] if own else max(RESULTS.glob(f"*-{name}.json"))  # names start with the date
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "train": benchmarks.train,
    "encode": benchmarks.encode,
    "encode-avx2": benchmarks.encode,
    "encode-twinvec-ko": benchmarks.encode,
    "start": benchmarks.start,
    "memory": benchmarks.memory,
    "limits": benchmarks.limits,
    "static": benchmarks.static,
    "wk": benchmarks.wk,
    "cranfield": benchmarks.cranfield,
    "demo": benchmarks.demo,
    "pairs": benchmarks.pairs,
    "best-pair": benchmarks.best_pair,
    "systems": benchmarks.systems,
    "three-encoders": benchmarks.three_encoders,
    "reranking": benchmarks.reranking,
    "sizing": benchmarks.sizing,
    "headline": benchmarks.headline,
    "search": benchmarks.search,
    "index-1000000": benchmarks.index,
    "index-40000000": benchmarks.index,
    "serve": benchmarks.serve,
    "kill_bulk": benchmarks.kill_bulk,
    "kill_collection": benchmarks.kill_collection,
    "kill_train": benchmarks.kill_train,
    "scores": models.scores,
    "tried": models.averages,
    "seeds": models.averages,
    "second-stage": models.dev_scores,
    "second-stage-tests": models.averages,
    "static-stages": models.dev_scores,
    "static-tests": models.averages,
    "third-stage": models.dev_scores,
    "texts": models.texts,
    "korean": models.korean,
    "korean-seeds": models.korean,
    "korean-tried": models.korean_tried,
    "korean-texts": models.korean_texts,
    "frontier": models.frontier,
    "layers": models.layers,
    "words": models.words,
    "sweeps": models.sweeps,
    "wk_scores": models.wk_scores,
}

SOURCES = {
    "headline": "demo",
    "best-pair": "pairs",
    "reranking": "cranfield",
    "sizing": "serve",
}  # block -> the result it shows, if the names differ


def rendered(page: str) -> str:
    """The page with all its blocks up to date."""
    return BLOCK.sub(lambda block: f"{block[1]}{render_block(block[2])}\n{block[3]}", page)


def render_block(name: str) -> str:
    """The content of a block, from the newest result."""
    return RENDERERS[name](newest(SOURCES.get(name, name)))


def main(check: bool) -> int:
    """Update all pages, or name those that are out of date."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(MODELS.glob("*.md"))]
    return fill_pages(pages, rendered, check=check)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
