"""Do the sums for many machines and sentences from measured rates, and put them into docs/bulk.md and docs/scale.md.

    python scripts/scale_sums.py [--check]

Reads the newest ``benchmarks/results/*-bulk.json``. A place is ``<!-- sums: machines -->`` ... ``<!-- end -->``.
With --check nothing is written; the exit code says whether a page is behind.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from result_markdown import fill_pages, table, where
from twinvec.choices import show_size

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PAGES = [ROOT / "docs/bulk.md", ROOT / "docs/scale.md"]
PLACE = re.compile(r"(<!-- sums: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TEXTS = {"1 million": 10**6, "40 million": 4 * 10**7, "1 billion": 10**9}
MACHINES = 1, 10, 100
COLUMNS = "1 machine", "10 machines", "100 machines"
UNMEASURED = "*Not measured yet: `python benchmarks/bulk.py`, then `make docs`.*"


def show_time(seconds: float) -> str:
    """A time in the unit that people would use.

    >>> show_time(0.2), show_time(90), show_time(5400), show_time(200000), show_time(1e10)
    ('0.2 s', '90 s', '90 min', '2.3 days', '317 years')
    """
    for unit, size, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48), ("days", 86400, 730)):
        if seconds < most * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds / (365.25 * 86400):,.0f} years"


def seconds_to_embed(n_texts: float, n_machines: int, *, rate: float, driver: float) -> float:
    """Machines add up, until the one that plans and writes cannot follow.

    >>> seconds_to_embed(1000, 10, rate=5, driver=100), seconds_to_embed(1000, 100, rate=5, driver=100)
    (20.0, 10.0)
    """
    return n_texts / min(n_machines * rate, driver)


def rates(result: dict[str, Any]) -> str:
    """End to end beside the encoder alone, and what one process does beside embedding."""
    rows = [
        [
            row["name"],
            f"{row['encoder_per_second']:,.0f}",
            f"{row['bulk_per_second']:,.0f}",
            f"{row['share']:.0%}",
            f"{row['bytes_per_text']:,.0f}",
        ]
        for row in result["rows"]
    ]
    header = [f"{result['n_texts']:,} texts", "encoder alone, texts/s", "whole job, texts/s", "share", "bytes per text"]
    driver = result["driver"]
    also = (
        f"Without a model, the job reads, looks up and writes {result['n_driver_texts']:,} texts at "
        f"{driver['no_model']:,} texts/s. A second run over unchanged rows reaches {driver['again']:,} texts/s, and "
        f"`read_bulk` {driver['read']:,} texts/s. Peak memory over all models was {result['peak_mb']} MB."
    )
    return f"{table(header, rows)}\n\n{also}\n\n{where(result)}"


def machines(result: dict[str, Any]) -> str:
    """Times to embed so many texts on so many machines, for every model measured."""
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
    header = ["embedding", *COLUMNS, "on disk", "most machines per driver"]
    return f"{table(header, rows)}\n\n{where(result)}"


def scans(result: dict[str, Any]) -> str:
    """Times of an exact search and of all pairs over so many texts on so many machines."""
    driver = result["driver"]
    rows = []
    for amount, n_texts in TEXTS.items():
        rows.append([f"100 queries, {amount} texts", *_times(100 * n_texts, driver["compared"])])
        rows.append([f"all pairs of {amount} texts", *_times(n_texts * (n_texts - 1) / 2, driver["pairs"])])
    return f"{table(['exact search', *COLUMNS], rows)}\n\n{where(result)}"


def _times(work: float, rate: float) -> list[str]:
    return [show_time(work / (n * rate)) for n in MACHINES]


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {"rates": rates, "machines": machines, "scans": scans}


def newest() -> dict[str, Any] | None:
    """The latest result, as dates sort as text."""
    found = sorted(RESULTS.glob("*-bulk.json"))
    return json.loads(found[-1].read_text(encoding="utf-8")) if found else None


def rendered(page: str, result: dict[str, Any] | None) -> str:
    """A page with all its places filled."""

    def fill(place: re.Match[str]) -> str:
        return f"{place[1]}{UNMEASURED if result is None else RENDERERS[place[2]](result)}\n{place[3]}"

    return PLACE.sub(fill, page)


def main(check: bool) -> int:
    """Fill the pages, or say which are behind."""
    return fill_pages(PAGES, partial(rendered, result=newest()), check=check)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
