"""Retrieval: rank all documents for every query by cosine.

Rankings are scored as in trec_eval and BEIR: nDCG uses the grade as gain; for all other measures, any grade above 0 is
relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, embed_once
from twinvec.scorer import Scorer, rank_texts
from twinvec.search import search

__all__ = ["RetrievalTask", "average_precision_of", "ndcg", "recall", "reciprocal_rank", "run_retrieval"]


def ndcg(grades: Sequence[float], ideal: Sequence[float], *, k: int) -> float:
    """Discounted gain of the first ``k`` ranks divided by the best possible; the gain is the grade.

    ``grades`` are in the order of the ranking; ``ideal`` has the grades of all relevant documents, in any order.

    >>> round(ndcg([0, 1], [1], k=10), 4)
    0.6309
    """
    return _gain(grades[:k]) / _gain(sorted(ideal, reverse=True)[:k])


def average_precision_of(grades: Sequence[float], n_relevant: int) -> float:
    """Mean of the precision at the ranks of all relevant documents; documents that are not ranked count 0.

    >>> average_precision_of([1, 0, 1], n_relevant=2)
    0.8333333333333333
    """
    ranks = [rank for rank, grade in enumerate(grades, start=1) if grade > 0]
    return sum(n_found / rank for n_found, rank in enumerate(ranks, start=1)) / n_relevant


def reciprocal_rank(grades: Sequence[float], *, k: int) -> float:
    """1 divided by the rank of the first relevant document; 0 if none is among the first ``k``.

    >>> reciprocal_rank([0, 0, 2], k=10), reciprocal_rank([0, 0, 2], k=2)
    (0.3333333333333333, 0.0)
    """
    return next((1 / rank for rank, grade in enumerate(grades[:k], start=1) if grade > 0), 0.0)


def recall(grades: Sequence[float], n_relevant: int, *, k: int) -> float:
    """The share of the relevant documents among the first ``k``.

    >>> recall([1, 0, 1], 4, k=2)
    0.25
    """
    return sum(grade > 0 for grade in grades[:k]) / n_relevant


def _gain(grades: Sequence[float]) -> float:
    return float(np.sum(np.asarray(grades, dtype=np.float64) / np.log2(np.arange(2, len(grades) + 2))))


DEPTH = 1000  # documents per ranking, as in trec_eval
RERANKED = 100  # documents per query that a scorer ranks again


@dataclass(frozen=True)
class RetrievalTask:
    """Queries and documents by id, and for each query the grades of its relevant documents."""

    name: str
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, float]]

    def __post_init__(self) -> None:
        if not self.queries or not self.documents:
            raise InputError(f"{self.name}: {len(self.queries)} queries and {len(self.documents)} documents.")
        for query in self.queries:
            if not any(grade > 0 for grade in self.relevant.get(query, {}).values()):
                raise InputError(
                    f"{self.name}: the query {query!r} has no relevant document.",
                    hint="Remove the query, because it cannot be scored.",
                )
        for query, grades in self.relevant.items():
            if query not in self.queries:
                raise InputError(f"{self.name}: there are grades for {query!r}, which is not a query.")
            unknown = next((document for document in grades if document not in self.documents), None)
            if unknown is not None:
                raise InputError(f"{self.name}: query {query!r} has a grade for {unknown!r}, which is not a document.")


def run_retrieval(
    task: RetrievalTask,
    embed: Embed,
    *,
    embed_documents: Embed | None = None,
    recall_at: Sequence[int] = (10, 100),
    rerank: Scorer | None = None,
    first: str = "cosine",
) -> list[Outcome]:
    """Outcomes with one value per query, in the order of the task: nDCG@10, AP, RR@10 and recall at each ``k``.

    ``embed_documents`` is for models that encode documents differently from queries. ``rerank`` scores the first
    ``RERANKED`` documents of each query again; the documents after them stay as they are. ``first`` names what ranks
    all documents.
    """
    if any(k < 1 or k > DEPTH for k in recall_at):
        raise InputError(f"Invalid recall_at: {list(recall_at)}.", hint=f"Use numbers from 1 to {DEPTH}.")
    measures: dict[str, Callable[[list[float], list[float]], float]] = {
        "nDCG@10 x 100, gain = grade": lambda ranked, ideal: ndcg(ranked, ideal, k=10),
        f"MAP x 100 over the first {DEPTH:,}": lambda ranked, ideal: average_precision_of(ranked, len(ideal)),
        "MRR@10 x 100": lambda ranked, _: reciprocal_rank(ranked, k=10),
    }
    for k in recall_at:
        measures[f"Recall@{k} x 100"] = partial(_recall, k=k)
    rankings = list(_rankings(task, embed, embed_documents or embed, rerank))
    how = f"exact {first} over all {len(task.documents):,} documents"
    if rerank is not None:
        how += f", the first {RERANKED} re-ranked by {Path(rerank.name).name}"
    return [
        Outcome(
            task=task.name,
            protocol=f"{name}, {how}",
            statistic="mean",
            predicted=np.array([measure(ranked, ideal) for ranked, ideal in rankings]),
        )
        for name, measure in measures.items()
    ]


def _recall(ranked: list[float], ideal: list[float], *, k: int) -> float:
    return recall(ranked, len(ideal), k=k)


def _rankings(
    task: RetrievalTask, embed: Embed, embed_documents: Embed, rerank: Scorer | None
) -> Iterator[tuple[list[float], list[float]]]:
    """Yield for every query the grades of its ranking, best first, and the grades of its relevant documents."""
    queries, documents = list(task.queries), list(task.documents)
    (queried,) = embed_once(embed, [task.queries[query] for query in queries])
    (stored,) = embed_once(embed_documents, [task.documents[document] for document in documents])
    hits = search(queried, stored, k=min(DEPTH, len(documents)))
    for query, ids in zip(queries, hits.ids, strict=True):
        if rerank is not None:
            best = [task.documents[documents[row]] for row in ids[:RERANKED]]
            ids[:RERANKED] = ids[rank_texts(rerank, task.queries[query], best).rows]
        grades = task.relevant[query]
        yield [grades.get(documents[row], 0.0) for row in ids], [grade for grade in grades.values() if grade > 0]
