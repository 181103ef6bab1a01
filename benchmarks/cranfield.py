"""Retrieval through a collection: Cranfield by meaning, by words, and by both.

    python benchmarks/cranfield.py [--model twinvec-mini] [--data FOLDER]

Imports 1,400 abstracts into a new collection and searches it for 225 questions in each mode. The score is nDCG@10 with
the grade as gain, as in `twinvec evaluate --tasks cranfield`, with a 95 % confidence interval over the questions. As a
check, the dense mode must agree with the exact search of that task.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
from common import write_result

from twinvec.choices import SearchMode
from twinvec.collection import Collection
from twinvec.evaluation.resampling import interval
from twinvec.evaluation.statistics import Outcome, value_of
from twinvec.evaluation.tasks.data_sets import load_task
from twinvec.evaluation.tasks.retrieval import RetrievalTask, ndcg, run_retrieval
from twinvec.loading import load

K = 10


def score_queries(collection: Collection, task: RetrievalTask, mode: SearchMode) -> Outcome:
    """The nDCG of every query."""
    scores = []
    for query, text in task.queries.items():
        grades = task.relevant[query]
        ranked = [grades.get(hit.id, 0.0) for hit in collection.search(text, K, mode=mode)]
        scores.append(ndcg(ranked, [grade for grade in grades.values() if grade > 0], k=K))
    return Outcome(task.name, f"nDCG@{K}, {mode}", "mean", np.array(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="twinvec-mini", help="model folder or name")
    data = os.environ.get("TWINVEC_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="folder with the data sets")
    options = parser.parse_args()
    task = load_task("cranfield", options.data)
    assert isinstance(task, RetrievalTask)
    encoder = load(options.model, long="cut")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.create(Path(folder) / "cranfield", model=encoder)
        collection.add(task.documents.values(), task.documents)
        for mode in get_args(SearchMode):
            outcome = score_queries(collection, task, mode)
            value, (low, high) = value_of(outcome), interval(outcome)
            rows.append({"mode": mode, "ndcg": round(value, 2), "low": round(low, 2), "high": round(high, 2)})
            print(f"{mode:8}{value:8.2f}  ({low:.2f} to {high:.2f})")
    exact = value_of(run_retrieval(task, encoder.encode_query, embed_documents=encoder.encode_document)[0])
    print(f"exact search over the same vectors: {exact:.2f}")
    assert abs(exact - rows[0]["ndcg"]) < 0.01, "the collection does not find what exact search finds"
    write_result(
        "cranfield",
        {
            "model": Path(options.model).name,
            "n_documents": len(task.documents),
            "n_queries": len(task.queries),
            "exact": round(exact, 2),
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
