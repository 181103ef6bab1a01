"""Retrieval through a collection: Cranfield by meaning, by words, and by both.

    python benchmarks/cranfield.py [--model twinvec-mini] [--data FOLDER] [--rerank NAME=FOLDER ...]

Imports 1,400 abstracts into a new collection and searches it for 225 questions in each mode. The score is nDCG@10 with
the grade as gain, as in `twinvec evaluate --tasks cranfield`, with a 95 % confidence interval over the questions. As a
check, the dense mode must agree with the exact search of that task. With --rerank, a scorer ranks the first 100 hits of
each mode again, and the difference has its own interval, paired by question.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
from common import write_result

import twinvec
from twinvec.choices import SearchMode
from twinvec.collection import Collection
from twinvec.evaluation.compare import compare_outcomes
from twinvec.evaluation.resampling import interval
from twinvec.evaluation.statistics import Outcome, value_of
from twinvec.evaluation.tasks.data_sets import load_task
from twinvec.evaluation.tasks.retrieval import RetrievalTask, ndcg, run_retrieval
from twinvec.loading import load
from twinvec.scorer import Scorer

K = 10


def score_queries(
    collection: Collection, task: RetrievalTask, mode: SearchMode, rerank: Scorer | None = None
) -> Outcome:
    """The nDCG of every query."""
    scores = []
    for query, text in task.queries.items():
        grades = task.relevant[query]
        ranked = [grades.get(hit.id, 0.0) for hit in collection.search(text, K, mode=mode, rerank=rerank)]
        scores.append(ndcg(ranked, [grade for grade in grades.values() if grade > 0], k=K))
    return Outcome(task.name, f"nDCG@{K}, {mode}", "mean", np.array(scores))


def row(mode: str, outcome: Outcome) -> dict[str, Any]:
    """A mode's score with its interval, also printed."""
    value, (low, high) = value_of(outcome), interval(outcome)
    print(f"{mode:8}{value:8.2f}  ({low:.2f} to {high:.2f})", flush=True)
    return {"mode": mode, "ndcg": round(value, 2), "low": round(low, 2), "high": round(high, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="twinvec-mini", help="model folder or name")
    data = os.environ.get("TWINVEC_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="folder with the data sets")
    parser.add_argument("--rerank", action="append", default=[], metavar="NAME=FOLDER", help="a scorer")
    options = parser.parse_args()
    task = load_task("cranfield", options.data)
    assert isinstance(task, RetrievalTask)
    encoder = load(options.model, long="cut")
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.create(Path(folder) / "cranfield", model=encoder)
        collection.add(task.documents.values(), task.documents)
        outcomes = {mode: score_queries(collection, task, mode) for mode in get_args(SearchMode)}
        rows = [row(mode, outcome) for mode, outcome in outcomes.items()]
        reranked = []
        for each in options.rerank:
            name, _, folder_of = each.partition("=")
            scorer = twinvec.load_scorer(folder_of, precision="int8", long="cut")
            for mode, before in outcomes.items():
                after = score_queries(collection, task, mode, scorer)
                change = compare_outcomes(after, before)
                gain = {"gain": change.difference, "gain_low": change.low, "gain_high": change.high}
                rounded = {key: round(value, 2) for key, value in gain.items()}
                reranked.append(row(mode, after) | {"scorer": name} | rounded)
                print(f"  {name}: {change.difference:+.2f} ({change.low:+.2f} to {change.high:+.2f})")
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
            "reranked": reranked,
        },
    )


if __name__ == "__main__":
    main()
