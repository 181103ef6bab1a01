"""Compare mean pooling with SBERT-WK, for docs/wk.md, from the output of ``twinvec compare --json``.

    python scripts/wk_scores.py NAME=MEAN-AND-WK.json,MEAN-AND-WK-PEARSON.json [NAME=...] > docs/lab/wk_scores.json

Each model has two comparisons, with mean pooling as the first system: Spearman over all pairs, and Pearson averaged
over subsets with SentEval's trained model for STSb and SICK-R.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEPT = ("task", "protocol", "left", "right", "difference", "low", "high", "p", "test", "n_compared")


def comparisons(file: str) -> list[dict[str, Any]]:
    """The two scores of each task and the paired test, without the folder names of the models."""
    return [{name: each[name] for name in KEPT} for each in json.loads(Path(file).read_text(encoding="utf-8"))]


if __name__ == "__main__":
    files = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if not files:
        sys.exit(__doc__)
    models = [
        {"model": name, "comparisons": [each for file in pair.split(",") for each in comparisons(file)]}
        for name, pair in files.items()
    ]
    print(json.dumps({"models": models}, indent=1))
