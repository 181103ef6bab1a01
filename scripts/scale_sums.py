"""Estimate the time for many machines and texts from measured rates, and update docs/bulk.md and docs/scale.md.

    python scripts/scale_sums.py [--check]

Reads the newest ``benchmarks/results/*-bulk.json``. A table is a block
``<!-- sums: machines -->`` ... ``<!-- end -->``. With --check nothing is written, and the exit code is 1 if a page is
out of date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from result_markdown import cells, fill_pages, show_time, table, where
from twinvec.choices import show_size

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PAGES = [ROOT / "docs/bulk.md", ROOT / "docs/scale.md"]
BLOCK = re.compile(r"(<!-- sums: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TEXTS = {"1 million": 10**6, "40 million": 4 * 10**7, "1 billion": 10**9}
MACHINES = 1, 10, 100
COLUMNS = "1 machine", "10 machines", "100 machines"


def seconds_to_embed(n_texts: float, n_machines: int, *, rate: float, driver: float) -> float:
    """The time to embed on several machines; the driver, which plans and writes, limits the total rate.

    >>> seconds_to_embed(1000, 10, rate=5, driver=100), seconds_to_embed(1000, 100, rate=5, driver=100)
    (20.0, 10.0)
    """
    return n_texts / min(n_machines * rate, driver)


def rates(result: dict[str, Any]) -> str:
    """The rate of a whole job compared with the encoder alone, and the rates of the other work."""
    formats = {
        "name": "",
        "encoder_per_second": ",.0f",
        "bulk_per_second": ",.0f",
        "share": ".0%",
        "bytes_per_text": ",.0f",
    }
    header = [f"{result['n_texts']:,} texts", "encoder alone, texts/s", "whole job, texts/s", "share", "bytes per text"]
    driver = result["driver"]
    also = (
        f"A job without a model reads, looks up and writes {result['n_driver_texts']:,} texts at "
        f"{driver['no_model']:,} texts/s. A second run over unchanged rows reaches {driver['again']:,} texts/s, and "
        f"`read_bulk` reads {driver['read']:,} texts/s. Peak memory over all models was {result['peak_mb']} MB."
    )
    return f"{table(header, cells(result['rows'], formats))}\n\n{also}\n\n{where(result)}"


def machines(result: dict[str, Any]) -> str:
    """Estimated times to embed on 1, 10 and 100 machines, for every measured model."""
    driver = result["driver"]["no_model"]
    rows = [
        [
            f"{row['name']}, {amount} texts",
            *(show_time(seconds_to_embed(n_texts, n, rate=row["bulk_per_second"], driver=driver)) for n in MACHINES),
            show_size(round(n_texts * row["bytes_per_text"])),
            f"{max(1, int(driver / row['bulk_per_second'])):,}",
        ]
        for row in result["rows"]
        for amount, n_texts in TEXTS.items()
    ]
    header = ["embedding", *COLUMNS, "on disk", "machines per driver, at most"]
    return f"{table(header, rows)}\n\n{where(result)}"


def scans(result: dict[str, Any]) -> str:
    """Estimated times of exact search and of all pairs on 1, 10 and 100 machines."""
    driver = result["driver"]
    rows = []
    for amount, n_texts in TEXTS.items():
        rows.append([f"100 queries, {amount} texts", *_times(100 * n_texts, driver["compared"])])
        rows.append([f"all pairs of {amount} texts", *_times(n_texts * (n_texts - 1) / 2, driver["pairs"])])
    return f"{table(['exact search', *COLUMNS], rows)}\n\n{where(result)}"


def _times(work: float, rate: float) -> list[str]:
    return [show_time(work / (n * rate)) for n in MACHINES]


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {"rates": rates, "machines": machines, "scans": scans}


def rendered(page: str, result: dict[str, Any]) -> str:
    """The page with all its blocks up to date."""
    return BLOCK.sub(lambda block: f"{block[1]}{RENDERERS[block[2]](result)}\n{block[3]}", page)


def main(check: bool) -> int:
    """Update the pages, or name those that are out of date."""
    newest = max(RESULTS.glob("*-bulk.json"))  # names start with the date
    return fill_pages(PAGES, partial(rendered, result=json.loads(newest.read_text(encoding="utf-8"))), check=check)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
