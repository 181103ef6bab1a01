"""Score models on the data that choose between recipes: STSb dev, SICK trial, and documents-retrieval.

    python scripts/dev_scores.py --documents FOLDER NAME=MODEL [NAME=MODEL ...] > docs/models/second-stage.json

FOLDER is written by recipes/documents.py; TWINVEC_DATA names the other data sets. All models run in int8.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import twinvec
from twinvec.data.examples import read_examples
from twinvec.data.roles import DataSource
from twinvec.evaluation.statistics import value_of
from twinvec.evaluation.tasks import load_task, run_retrieval
from twinvec.metrics import spearman
from twinvec.vectors import unit_rows

WIDTHS = None, 128  # all values of a vector, and the first ones


def similarity(encoder: twinvec.Encoder, file: str, column: str) -> list[float]:
    """Spearman x 100 of the cosines of scored pairs, for each width."""
    path = Path(os.environ["TWINVEC_DATA"]) / "sts" / file
    source = DataSource(str(path), "scored_pairs", columns={"score": column}, score_range=(0.0, 5.0))
    examples = read_examples(source)
    vectors = encoder.encode(examples.texts, progress=False)
    found = []
    for width in WIDTHS:
        rows = unit_rows(vectors[:, :width])
        left, right = (rows[examples.indices[role]] for role in ("text1", "text2"))
        found.append(round(100 * spearman((left * right).sum(axis=1), examples.targets), 2))
    return found


def scores(model: str, documents: Path) -> dict[str, float]:
    """All scores of one model."""
    encoder = twinvec.load(model, precision="int8", long="cut")
    stsb, sick = similarity(encoder, "stsb-dev.tsv.gz", "score"), similarity(encoder, "sick-trial.tsv.gz", "score")
    task = load_task("documents-retrieval", documents)
    (gain,) = [each for each in run_retrieval(task, encoder.encode) if each.protocol.startswith("nDCG@10")]
    return {
        "stsb-dev": stsb[0],
        "stsb-dev, 128 values": stsb[1],
        "sick-trial": sick[0],
        "documents nDCG@10": round(value_of(gain), 2),
    }


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] != "--documents":
        sys.exit(__doc__)
    named = dict(argument.split("=", 1) for argument in sys.argv[3:])
    print(json.dumps({name: scores(model, Path(sys.argv[2])) for name, model in named.items()}, indent=1))
