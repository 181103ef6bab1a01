"""Collect the scores of several evaluations, for the page of our models.

    python scripts/model_scores.py NAME=EVALUATION.json [NAME=...] > docs/models/scores.json

Each file is written by ``twinvec evaluate --json``. This script defines which tasks are averaged.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick-r")
TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
SPEARMAN = "Spearman of cosine x 100, all pairs together"


def scores(file: Path) -> dict[str, Any]:
    """The STS and transfer scores with their averages, and nDCG@10, all x 100."""
    evaluation = json.loads(file.read_text(encoding="utf-8"))
    found: dict[str, float] = {}
    wanted = {**dict.fromkeys(STS, SPEARMAN), **dict.fromkeys(TRANSFER, "Accuracy"), "cranfield": "nDCG@10"}
    for result in evaluation["results"]:
        task = result["task"]
        if task in wanted and result["protocol"].startswith(wanted[task]):
            found[task] = result["value"]
    row: dict[str, Any] = {"precision": evaluation["settings"].get("precision", "float32")}
    row["sts"] = {task: round(found[task], 2) for task in STS}
    row["transfer"] = {task: round(found[task], 2) for task in TRANSFER}
    row["sts_average"] = round(sum(found[task] for task in STS) / len(STS), 2)
    row["transfer_average"] = round(sum(found[task] for task in TRANSFER) / len(TRANSFER), 2)
    row["cranfield"] = round(found["cranfield"], 2)
    return row


if __name__ == "__main__":
    files = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if not files:
        sys.exit(__doc__)
    print(json.dumps({name: scores(Path(file)) for name, file in files.items()}, indent=1))
