"""Search one version of a collection by meaning, by words, or by both, with optional reranking."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from twinvec.collection.indexes import LanceQuery, LanceTable, lance_errors, n_probes, reason_of
from twinvec.collection.model import ModelRecord
from twinvec.collection.rows import Hit, check_filter, columns_to_read, metadata_of, names_in, rows_with
from twinvec.collection.schema import kinds_of_schema, pyarrow
from twinvec.errors import InputError, TwinvecError
from twinvec.extras import require
from twinvec.pairs.poly_encoder import PolyEncoder
from twinvec.scorer import Scorer, rank_texts
from twinvec.types import Vectors

__all__ = [
    "dense_hits",
    "filter_errors",
    "fused_hits",
    "reciprocal_rank_fusion",
    "reranked_hits",
    "text_hits",
    "usable_filter",
]

Id = TypeVar("Id", bound=Hashable)

SMOOTHING = 60  # the paper's k


def reciprocal_rank_fusion(rankings: Sequence[Sequence[Id]], *, smoothing: float = SMOOTHING) -> list[tuple[Id, float]]:
    """All ids of the rankings with their fused scores, best first.

    Each ranking lists the best first and each id once. Ties keep the order of first appearance: along the first
    ranking, then the second.

    >>> reciprocal_rank_fusion([["a", "b"], ["b", "c"]], smoothing=0)
    [('b', 1.5), ('a', 1.0), ('c', 0.5)]
    """
    scores: defaultdict[Id, float] = defaultdict(float)
    for ranking in rankings:
        for rank, each in enumerate(ranking, start=1):
            scores[each] += 1 / (smoothing + rank)
    return sorted(scores.items(), key=lambda item: -item[1])


SCORES: dict[str, Callable[[float], float]] = {  # from Lance's distance to our score
    "cosine": lambda distance: 1 - distance,
    "dot": lambda distance: 1 - distance,
    "euclidean": lambda distance: -math.sqrt(max(distance, 0.0)),
}


def usable_filter(table: LanceTable, where: str | None) -> str | None:
    """Return the condition if it is valid for this version of the table."""
    if where is None:
        return None
    columns = {"id": "text", "text": "text", **kinds_of_schema(table.schema, pyarrow())}
    check_filter(where, columns)
    try:
        table.search().where(where).select(["id"]).limit(1).explain_plan()
    except (ValueError, RuntimeError) as error:
        raise InputError(
            f"Invalid filter {where!r}: {reason_of(error)}.",
            hint=f"The columns are {', '.join(f'{name} ({kind})' for name, kind in columns.items())}; "
            "put strings in single quotes.",
        ) from error
    return where


@contextmanager
def filter_errors(table: LanceTable, where: str | None) -> Iterator[None]:
    """Turn an error of Lance into an InputError if the filter caused it, such as a division by zero in some row.

    The filter is the cause if it fails alone and its columns can be read without it.
    """
    try:
        yield
    except (RuntimeError, OSError, ValueError) as error:
        if where is None or isinstance(error, TwinvecError) or not _fails(table, where):
            raise
        raise InputError(
            f"The filter {where!r} fails for some texts: {reason_of(error)}.",
            hint="Return null for these, such as x / nullif(y, 0) or try_cast(x as int).",
        ) from error


def _fails(table: LanceTable, where: str) -> bool:
    """Whether a filter fails on readable columns."""
    try:
        table.count_rows(where)
    except (RuntimeError, OSError, ValueError):
        columns = [name for name in columns_to_read(table) if name.lower() in names_in(where)]
        try:
            for _ in table.search().select(columns or ["id"]).to_batches():
                pass
        except (RuntimeError, OSError, ValueError):
            return False
        return True
    return False


def dense_hits(
    table: LanceTable, vector: Vectors, k: int, *, model: ModelRecord, where: str | None = None, is_exact: bool = False
) -> list[Hit]:
    """The ``k`` texts whose vectors are nearest to ``vector`` ``(width,)``, best first.

    With cosine, zero vectors (which a static model returns for a text without tokens) are left out.
    """
    with lance_errors("search the collection"):
        n_rows = table.count_rows()
        query = table.search(np.asarray(vector, dtype=np.float32), vector_column_name="vector")
        query = query.distance_type(model.metric)
        query = query.bypass_vector_index() if is_exact else query.nprobes(n_probes(n_rows))
        with filter_errors(table, where):
            rows = _best(query, table, min(k, n_rows), "_distance", where)
    return _hits(rows, [SCORES[model.similarity](row["_distance"]) for row in rows])


def text_hits(table: LanceTable, query: str, k: int, *, where: str | None = None) -> list[Hit]:
    """The ``k`` texts with the best BM25 score for ``query``, best first, without texts that match no word."""
    match = require("lancedb.query", extra="search", feature="A collection").MatchQuery(query, "text")
    with lance_errors("search the collection"):
        found = table.search(match, query_type="fts")
        with filter_errors(table, where):
            rows = _best(found, table, min(k, table.count_rows()), "_score", where)
    return _hits(rows, [row["_score"] for row in rows])


def _best(query: LanceQuery, table: LanceTable, k: int, column: str, where: str | None) -> list[dict[str, Any]]:
    """The first ``k`` rows of a query, including the score in ``column``."""
    if k == 0:
        return []
    if where is not None:
        query = query.where(where, prefilter=True)
    rows: list[dict[str, Any]] = query.limit(k).select([*columns_to_read(table), column]).to_list()
    return rows


def _hits(rows: Sequence[Mapping[str, Any]], scores: Sequence[float]) -> list[Hit]:
    """Rows and their scores as hits, best first; ties by id."""
    hits = [Hit(row["id"], row["text"], score, metadata_of(row)) for row, score in zip(rows, scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def fused_hits(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Join rankings by reciprocal rank fusion; the hits have the fused scores."""
    by_id = {hit.id: hit for ranking in rankings for hit in ranking}
    fused = reciprocal_rank_fusion([[hit.id for hit in ranking] for ranking in rankings])
    return [replace(by_id[each], score=score) for each, score in fused]


def reranked_hits(
    table: LanceTable, hits: Sequence[Hit], query: str, scorer: Scorer, *, model: ModelRecord
) -> list[Hit]:
    """The hits sorted by a scorer of (query, text) pairs, with its scores.

    A poly-encoder whose vectors the collection has, by ``model``, does not embed the texts again.
    """
    if not hits:
        return []
    if isinstance(scorer, PolyEncoder) and scorer.space == model.digest:
        ranked = scorer.rank_vectors(query, _vectors_of(table, hits))
    else:
        ranked = rank_texts(scorer, query, [hit.text for hit in hits])
    best = zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
    return [replace(hits[row], score=score) for row, score in best]


def _vectors_of(table: LanceTable, hits: Sequence[Hit]) -> Vectors:
    """The stored vectors of hits, ``(len(hits), width)``."""
    with lance_errors("read vectors of the collection"):
        rows = [
            row for batch in rows_with(table, "id", [hit.id for hit in hits], ["vector"]) for row in batch.to_pylist()
        ]
    found = {row["id"]: row["vector"] for row in rows}
    return np.array([found[hit.id] for hit in hits], dtype=np.float32)
