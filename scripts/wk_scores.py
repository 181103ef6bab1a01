"""Put mean pooling beside SBERT-WK: the table of docs/wk.md, from what ``twinvec compare --json`` printed.

    python scripts/wk_scores.py NAME=MEAN-AND-WK.json,MEAN-AND-WK-PEARSON.json [NAME=...] > docs/lab/wk_scores.json

Of each model two comparisons, mean pooling first: Spearman over all pairs, and Pearson averaged over subsets with
SentEval's trained model for STSb and SICK-R.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEPT = ("task", "protocol", "left", "right", "difference", "low", "high", "p", "test", "n_compared")


def comparisons(file: str) -> list[dict[str, Any]]:
    """Each task's two scores and the paired test, without the names of the models' folders."""
    found = json.loads(Path(file).read_text(encoding="utf-8"))
    return [{name: each[name] for name in KEPT} for each in found]


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if not given:
        sys.exit(__doc__)
    models = [
        {"model": name, "comparisons": [each for file in files.split(",") for each in comparisons(file)]}
        for name, files in given.items()
    ]
    print(json.dumps({"models": models}, indent=1))
