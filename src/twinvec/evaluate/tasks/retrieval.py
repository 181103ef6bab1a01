"""Retrieval: every query is compared with every document by cosine, and its ranking is judged by relevance grades.

The measures are those of trec_eval and BEIR: nDCG with the grade as gain, and any grade above 0 as relevant elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.tasks.embed import Embed, embed_once
from twinvec.evaluate.tasks.ranking import average_precision_of, ndcg, recall, reciprocal_rank
from twinvec.search import search

__all__ = ["RetrievalTask", "run_retrieval"]

DEPTH = 1000  # how far down a ranking is read; trec_eval reads as far


@dataclass(frozen=True)
class RetrievalTask:
    """Queries and documents by their ids, and for each query the grades of its relevant documents."""

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
                    hint="Leave it out: no ranking of it can be right.",
                )
        for query, grades in self.relevant.items():
            if query not in self.queries:
                raise InputError(f"{self.name}: there are grades for {query!r}, which is no query.")
            for document in grades:
                if document not in self.documents:
                    raise InputError(
                        f"{self.name}: query {query!r} has a grade for {document!r}, which is no document."
                    )


def run_retrieval(
    task: RetrievalTask, embed: Embed, *, embed_documents: Embed | None = None, recall_at: Sequence[int] = (10, 100)
) -> list[Outcome]:
    """Outcomes with one value per query, in the order of the task: nDCG@10, AP, RR@10 and recall at each ``k``.

    ``embed_documents`` is for models that encode documents otherwise than queries.
    """
    if any(k < 1 or k > DEPTH for k in recall_at):
        raise InputError(f"recall_at is {list(recall_at)}.", hint=f"Give places from 1 to {DEPTH}.")
    measures: dict[str, Callable[[list[float], list[float]], float]] = {
        "nDCG@10 x 100, gain = grade": lambda ranked, ideal: ndcg(ranked, ideal, k=10),
        f"MAP x 100 over the first {DEPTH:,}": lambda ranked, ideal: average_precision_of(ranked, len(ideal)),
        "MRR@10 x 100": lambda ranked, _: reciprocal_rank(ranked, k=10),
    }
    for k in recall_at:
        measures[f"Recall@{k} x 100"] = partial(_recall, k=k)
    rankings = list(_rankings(task, embed, embed_documents or embed))
    return [
        Outcome(
            task=task.name,
            protocol=f"{name}, exact cosine over all {len(task.documents):,} documents",
            statistic="mean",
            predicted=np.array([measure(ranked, ideal) for ranked, ideal in rankings]),
        )
        for name, measure in measures.items()
    ]


def _recall(ranked: list[float], ideal: list[float], *, k: int) -> float:
    return recall(ranked, len(ideal), k=k)


def _rankings(task: RetrievalTask, embed: Embed, embed_documents: Embed) -> Iterator[tuple[list[float], list[float]]]:
    """For every query the grades of its ranking, best place first, and those of its relevant documents."""
    queries, documents = list(task.queries), list(task.documents)
    (asked,) = embed_once(embed, [task.queries[query] for query in queries])
    (stored,) = embed_once(embed_documents, [task.documents[document] for document in documents])
    hits = search(asked, stored, k=min(DEPTH, len(documents)))
    for query, ids in zip(queries, hits.ids, strict=True):
        grades = task.relevant[query]
        yield [grades.get(documents[place], 0.0) for place in ids], [grade for grade in grades.values() if grade > 0]
