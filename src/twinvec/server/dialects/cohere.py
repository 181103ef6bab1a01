"""The dialect of Cohere, and the re-ranking of Jina and TEI: they share a path and are told apart by their fields."""

from __future__ import annotations

from typing import Any, Literal
from uuid import uuid4

import msgspec

from twinvec.choices import Role
from twinvec.embedder import ModelEmbedder
from twinvec.server.dialects import tei
from twinvec.server.dialects.openai import as_base64
from twinvec.server.problems import Dialect, Problem
from twinvec.server.wire import Call, Endpoint
from twinvec.types import Vectors
from twinvec.vectors import quantize_vectors

__all__ = ["DIALECT", "ENDPOINTS"]


def error_body(problem: Problem, _: int) -> object:
    """An error as the clients of Cohere (``message``) and Jina (``detail``) expect it."""
    return {"message": problem.message, "detail": problem.message}


DIALECT = Dialect("cohere", error_body)

EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]
InputType = Literal["search_query", "search_document", "classification", "clustering"]
ROLES: dict[str, Role] = {"search_query": "query", "search_document": "document"}


class Content(msgspec.Struct):
    """A part of an input; only texts are supported."""

    type: str
    text: str | None = None


class Input(msgspec.Struct):
    """An input made of parts."""

    content: list[Content]


class EmbedRequest(msgspec.Struct):
    """``input_type`` selects the model's prompt."""

    texts: list[str] | None = None
    inputs: list[Input] | None = None
    model: str | None = None
    input_type: InputType | None = None
    embedding_types: list[EmbeddingType] | None = None
    output_dimension: int | None = None
    truncate: Literal["NONE", "START", "END"] | None = "END"


class EmbedResponse(msgspec.Struct):
    """Vectors by type, in the order of the texts."""

    id: str
    embeddings: dict[str, list[Any]]
    texts: list[str]
    meta: dict[str, Any]
    response_type: str = "embeddings_by_type"


class Document(msgspec.Struct):
    """A document given as an object."""

    text: str


class RerankRequest(msgspec.Struct):
    """``documents`` is the field of Cohere and Jina, ``texts`` that of TEI."""

    query: str
    documents: list[str | Document] | None = None
    texts: list[str] | None = None
    model: str | None = None
    top_n: int | None = None
    return_documents: bool | None = False
    max_tokens_per_doc: int | None = None
    raw_scores: bool = False
    return_text: bool = False


class RerankResult(msgspec.Struct, omit_defaults=True):
    """A document of a ranking."""

    index: int
    relevance_score: float
    document: Document | None = None


class RerankResponse(msgspec.Struct):
    """Documents, best first."""

    id: str
    model: str
    results: list[RerankResult]
    meta: dict[str, Any]
    object: str = "list"


async def embed(request: EmbedRequest, call: Call) -> EmbedResponse:
    """Embed texts for search, classification or clustering, as one type of numbers or several."""
    name = call.model(request.model, "embedding")
    texts = call.texts(texts_of(request), "texts")
    if request.truncate == "START":
        raise Problem("invalid", "'truncate' must be END or NONE: this server keeps the beginning.", "truncate")
    found = await call.models.embed(
        name,
        texts,
        role=ROLES.get(request.input_type or "", "text"),
        prompt_name=await own_prompt(request.input_type, name, call),
        width=request.output_dimension,
        truncate=request.truncate != "NONE",
    )
    by_type: dict[str, list[Any]] = {
        kind: as_type(found.vectors, kind) for kind in request.embedding_types or ["float"]
    }
    return EmbedResponse(str(uuid4()), by_type, texts, meta({"input_tokens": found.n_read}))


async def rerank(request: RerankRequest, call: Call) -> RerankResponse | list[tei.RankedText]:
    """Rank texts for a query with a cross- or poly-encoder, best first."""
    name = call.model(request.model, "scoring")
    is_tei = request.documents is None and request.texts is not None
    given = request.texts if is_tei else request.documents
    texts = call.texts([each if isinstance(each, str) else each.text for each in given or ()], "documents")
    if request.top_n is not None and request.top_n < 1:
        raise Problem("invalid", f"'top_n' must be at least 1, got {request.top_n}.", "top_n")
    await refuse_shorter(request.max_tokens_per_doc, name, call)
    order, scores = await call.models.rank(name, request.query, texts, raw=request.raw_scores)
    if is_tei:
        return tei.ranked_texts(order, scores, texts if request.return_text else None)
    shown = [Document(text) if request.return_documents else None for text in texts]
    results = [RerankResult(index, scores[index], shown[index]) for index in order[: request.top_n]]
    return RerankResponse(str(uuid4()), name, results, meta({"search_units": 1}))


def texts_of(request: EmbedRequest) -> list[str]:
    """The texts of a request, given plainly or in parts."""
    if request.inputs is None:
        return request.texts or []
    parts = [part for each in request.inputs for part in each.content]
    if any(part.type != "text" or part.text is None for part in parts):
        raise Problem("invalid", "'inputs' holds something other than texts.", "inputs")
    return ["\n".join(part.text or "" for part in each.content) for each in request.inputs]


async def own_prompt(input_type: str | None, name: str, call: Call) -> str | None:
    """The model's prompt with the name of the input type, such as "clustering", if it has one."""
    embedder = await call.models.embedder(name)
    has_one = isinstance(embedder, ModelEmbedder) and input_type in embedder.encoder.prompts
    return input_type if has_one else None


def as_type(vectors: Vectors, kind: EmbeddingType) -> list[Any]:
    """Vectors as one type of numbers."""
    if kind == "base64":
        return as_base64(vectors)
    rows: list[Any] = quantize_vectors(vectors, "float32" if kind == "float" else kind).tolist()
    return rows


async def refuse_shorter(most: int | None, name: str, call: Call) -> None:
    """Refuse to cut documents earlier than the model does."""
    limit = None if most is None else getattr(await call.models.scorer(name), "max_tokens", None)
    if most is not None and limit is not None and most < limit:
        message = f"'max_tokens_per_doc' is {most}, but this server reads pairs of up to {limit} tokens. Remove it."
        raise Problem("invalid", message, "max_tokens_per_doc")


def meta(billed: dict[str, int]) -> dict[str, Any]:
    """What Cohere tells about a request."""
    return {"api_version": {"version": "2"}, "billed_units": billed}


ENDPOINTS = (
    Endpoint("POST", ("/v2/embed",), embed, DIALECT, EmbedRequest, EmbedResponse),
    Endpoint("POST", ("/v2/rerank", "/v1/rerank"), rerank, DIALECT, RerankRequest, RerankResponse),
    Endpoint("POST", ("/rerank",), rerank, tei.DIALECT, RerankRequest, RerankResponse | list[tei.RankedText]),
)
