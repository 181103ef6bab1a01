"""Put the newest benchmark results into README and docs, between marks that name the benchmark.

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

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PLACE = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def newest(name: str) -> dict[str, Any]:
    """The latest result file of a benchmark; dates sort as text."""
    result: dict[str, Any] = json.loads(sorted(RESULTS.glob(f"*-{name}.json"))[-1].read_text(encoding="utf-8"))
    return result


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def where(result: dict[str, Any]) -> str:
    """On what machine, from what commit and file a result came."""
    machine = result["machine"]
    abilities = ", ".join(machine["abilities"]) or "no vector extensions listed"
    return f"*{machine['processor']}, {machine['cores']} cores ({abilities}); commit {result['commit']}.*"


def train(result: dict[str, Any]) -> str:
    """Pairs a second and the loss curves."""
    rows = [
        [
            row["name"],
            f"{row['pairs_per_second']:.0f}",
            f"{row['ratio']:.2f}",
            " ".join(f"{x:.2f}" for x in row["losses"]),
        ]
        for row in result["rows"]
    ]
    header = [
        f"{result['model']}, {result['n_pairs']:,} SNLI pairs, batch {result['batch']}",
        "pairs a second",
        "ratio",
        f"loss, mean of every {result['steps_per_loss']} steps",
    ]
    return f"{table(header, rows)}\n\n{where(result)}"


def encode(result: dict[str, Any]) -> str:
    """Speed and fidelity of each contender."""
    rows = [
        [
            row["name"],
            f"{row['sentences_per_second']:.0f}",
            f"{row['ratio']:.2f}",
            f"{row['mean_cosine']:.5f}",
            f"{row['min_cosine']:.5f}",
        ]
        for row in result["rows"]
    ]
    header = [f"{result['model']}, {result['n_texts']:,} sentences", "a second", "ratio", "mean cosine", "lowest"]
    return f"{table(header, rows)}\n\n{where(result)}"


def start(result: dict[str, Any]) -> str:
    """Seconds and memory of a new process."""
    rows = [
        [
            row["name"],
            f"{row['seconds']:.2f}",
            f"{row['ratio']:.1f}x",
            str(row["peak_mb"]),
            f"{row['memory_share']:.2f}",
        ]
        for row in result["rows"]
    ]
    header = ["from import to the first vector", "seconds", "faster", "peak MB", "memory share"]
    return f"{table(header, rows)}\n\n{where(result)}"


def memory(result: dict[str, Any]) -> str:
    """Peak memory over a long stream of texts."""
    return (
        f"`encode_iter` over {result['n_texts']:,} texts held at most {result['peak_mb']} MB "
        f"({result['seconds']} seconds).\n\n{where(result)}"
    )


def limits(result: dict[str, Any]) -> str:
    """How near the bare matrix products the encoder runs."""
    rows = [
        [
            row["precision"],
            f"{row['products_gflops_all_cores']:.0f}",
            str(row["limit_texts_per_second"]),
            str(row["texts_per_second"]),
            f"{row['share_of_limit']:.0%}",
        ]
        for row in result["rows"]
    ]
    header = ["precision", "products, Gflop/s", "their limit, texts/s", "reached", "share"]
    shares = ", ".join(f"{name} {share:.1%}" for name, share in result["float32_shares"].items())
    return f"{table(header, rows)}\n\nTime in float32, by operator: {shares}.\n\n{where(result)}"


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "encode": encode,
    "train": train,
    "start": start,
    "memory": memory,
    "limits": limits,
}


def rendered(page: str) -> str:
    """A page with all its places filled."""
    return PLACE.sub(lambda found: f"{found[1]}{RENDERERS[found[2]](newest(found[2]))}\n{found[3]}", page)


def main(check: bool) -> int:
    """Fill all pages, or say which are behind."""
    behind = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        page = path.read_text(encoding="utf-8")
        if rendered(page) != page:
            behind.append(path.name)
            if not check:
                path.write_text(rendered(page), encoding="utf-8")
    if check and behind:
        print(f"behind their results: {', '.join(behind)}; run make docs", file=sys.stderr)
    return int(check and bool(behind))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
