"""Collect the scores of several evaluations, for the page of the Korean model.

    python scripts/korean_scores.py NAME=EVALUATION.json [NAME=...] > docs/models/korean.json

Each file is written by ``twinvec evaluate --tasks korean --json``. English tasks are added if the file has all of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from model_scores import scores as english_scores

# name in the table -> task, and how its protocol starts
KOREAN = {
    "KorSTS test": ("korsts", "Spearman of cosine"),
    "KLUE-STS dev": ("klue-sts", "Spearman of cosine"),
    "English-Korean STS": ("korsts-cross", "Spearman of cosine"),
    "Tatoeba, English to Korean": ("tatoeba-ko", "Accuracy x 100, English to Korean"),
    "Tatoeba, Korean to English": ("tatoeba-ko", "Accuracy x 100, Korean to English"),
    "paraKQC, MAP@R": ("parakqc", "MAP@R"),
    "paraKQC, R-precision": ("parakqc", "R-precision"),
}
ENGLISH = {"sts_average": "STS average", "transfer_average": "transfer average", "cranfield": "Cranfield nDCG@10"}


def scores(file: Path) -> dict[str, float]:
    """The Korean scores x 100 and, if the file has them, the averages of the English ones."""
    evaluation: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    row: dict[str, float] = {}
    for name, (task, protocol) in KOREAN.items():
        found = [
            result["value"]
            for result in evaluation["results"]
            if result["task"] == task and result["protocol"].startswith(protocol)
        ]
        if found:
            row[name] = round(found[0], 2)
    tasks = {result["task"] for result in evaluation["results"]}
    if {"sts12", "mr", "cranfield"} <= tasks:
        english = english_scores(file)
        row |= {name: english[key] for key, name in ENGLISH.items()}
    return row


if __name__ == "__main__":
    files = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if not files:
        sys.exit(__doc__)
    print(json.dumps({name: scores(Path(file)) for name, file in files.items()}, indent=1))
