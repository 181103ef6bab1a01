"""Scoring of pairs in the dialect of vLLM; its errors are those of OpenAI."""

from __future__ import annotations

import time
from uuid import uuid4

import msgspec

from twinvec.scorer import Pair
from twinvec.server.dialects.openai import DIALECT
from twinvec.server.problems import Problem
from twinvec.server.wire import Call, Endpoint

__all__ = ["ENDPOINTS"]

Texts = str | list[str]


class ScoreRequest(msgspec.Struct):
    """Pairs of ``queries`` and ``documents``, also called ``text_1`` and ``text_2``.

    One query is scored with each document; several queries need as many documents.
    """

    queries: Texts | None = None
    documents: Texts | None = None
    text_1: Texts | None = None
    text_2: Texts | None = None
    model: str | None = None


class ScoreItem(msgspec.Struct):
    """The score of one pair."""

    index: int
    score: float
    object: str = "score"


class ScoreResponse(msgspec.Struct):
    """Scores in the order of the pairs. Tokens are not counted."""

    id: str
    created: int
    model: str
    data: list[ScoreItem]
    usage: dict[str, int]
    object: str = "list"


async def score(request: ScoreRequest, call: Call) -> ScoreResponse:
    """Score pairs of texts with a cross- or poly-encoder."""
    name = call.model(request.model, "scoring")
    scores = await call.models.single_scores(name, pairs_of(request, call))
    data = [ScoreItem(index, each) for index, each in enumerate(scores.tolist())]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return ScoreResponse(f"score-{uuid4().hex}", int(time.time()), name, data, usage)


def pairs_of(request: ScoreRequest, call: Call) -> list[Pair]:
    """The pairs of a request."""
    first = request.text_1 if request.queries is None else request.queries
    second = request.text_2 if request.documents is None else request.documents
    if first is None or second is None:
        raise Problem("invalid", "Send 'queries' and 'documents', or 'text_1' and 'text_2'.")
    left, right = call.texts(first, "queries"), call.texts(second, "documents")
    if len(left) not in (1, len(right)):
        raise Problem("invalid", f"{len(left)} queries do not match {len(right)} documents.", "queries")
    return list(zip(left if len(left) == len(right) else left * len(right), right, strict=True))


ENDPOINTS = (Endpoint("POST", ("/score", "/v1/score"), score, DIALECT, ScoreRequest, ScoreResponse),)
