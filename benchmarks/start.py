"""Seconds and peak memory of a new process from import to the first vector, compared with sentence-transformers.

    python benchmarks/start.py [--model FOLDER] [--rounds 7]

Each start is a new process; the contenders alternate. The disk cache is warm for all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from common import arguments, write_result

MEASURE = """
import json, resource, sys, time
started = time.perf_counter()
{body}
print(json.dumps([time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
BODIES = {
    "sentence-transformers": (
        "from sentence_transformers import SentenceTransformer\n"
        "SentenceTransformer(sys.argv[1], device='cpu').encode('A first text.')"
    ),
    "twinvec float32": "import twinvec\ntwinvec.load(sys.argv[1]).encode('A first text.')",
    "twinvec int8": "import twinvec\ntwinvec.load(sys.argv[1], precision='int8').encode('A first text.')",
}


def start(body: str, model: Path) -> tuple[float, float]:
    """Seconds to the first vector, and peak resident megabytes, of one new process."""
    command = [sys.executable, "-W", "ignore", "-c", MEASURE.format(body=body), str(model)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = json.loads(result.stdout.splitlines()[-1])
    return seconds, megabytes


def main() -> None:
    options = arguments(__doc__).parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in BODIES}
    for body in BODIES.values():
        start(body, options.model)
    for _ in range(options.rounds):
        for name, body in BODIES.items():
            found[name].append(start(body, options.model))
    medians = {name: (median(s for s, _ in runs), median(m for _, m in runs)) for name, runs in found.items()}
    rival_s, rival_mb = medians["sentence-transformers"]
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "seconds": round(seconds, 3),
            "ratio": round(rival_s / seconds, 1),
            "peak_mb": round(megabytes),
            "memory_share": round(megabytes / rival_mb, 2),
        }
        for name, (seconds, megabytes) in medians.items()
    ]
    print(f"{'':24}{'seconds':>9}{'faster':>8}{'peak MB':>9}{'memory':>8}")
    for row in rows:
        print(
            f"{row['name']:24}{row['seconds']:>9.2f}{row['ratio']:>7.1f}x{row['peak_mb']:>9}{row['memory_share']:>8.2f}"
        )
    write_result("start", {"model": options.model.name, "rounds": options.rounds, "rows": rows})


if __name__ == "__main__":
    main()
