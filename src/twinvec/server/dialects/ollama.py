"""The dialect of Ollama."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import msgspec

from twinvec.server.problems import Dialect, Problem
from twinvec.server.wire import Call, Endpoint

__all__ = ["DIALECT", "ENDPOINTS"]

TAG = ":latest"  # which its clients put behind a name


def error_body(problem: Problem, _: int) -> object:
    """An error as Ollama's clients expect it."""
    return {"error": problem.message}


DIALECT = Dialect("ollama", error_body)


class EmbedRequest(msgspec.Struct):
    """``input`` is one text or several."""

    input: str | list[str]
    model: str | None = None
    truncate: bool | None = True
    dimensions: int | None = None


class EmbedResponse(msgspec.Struct):
    """Vectors in the order of the texts; times in nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    prompt_eval_count: int
    load_duration: int = 0


class EmbeddingsRequest(msgspec.Struct):
    """The older request, for one text."""

    prompt: str
    model: str | None = None


class EmbeddingsResponse(msgspec.Struct):
    """One vector."""

    embedding: list[float]


class Tag(msgspec.Struct):
    """One model."""

    name: str
    model: str
    size: int
    digest: str = ""
    modified_at: str = "1970-01-01T00:00:00Z"
    details: dict[str, Any] = {}


class Tags(msgspec.Struct):
    """All models."""

    models: list[Tag]


async def embed(request: EmbedRequest, call: Call) -> EmbedResponse:
    """Embed one text or several."""
    start = time.perf_counter_ns()
    name = call.model(plain_name(request.model), "embedding")
    texts = call.texts(request.input, "input")
    truncate = request.truncate is not False
    found = await call.models.embed(name, texts, width=request.dimensions, truncate=truncate)
    seconds = time.perf_counter_ns() - start
    return EmbedResponse(request.model or name, found.vectors.tolist(), seconds, found.n_read)


async def embeddings(request: EmbeddingsRequest, call: Call) -> EmbeddingsResponse:
    """Embed one text (the older request)."""
    name = call.model(plain_name(request.model), "embedding")
    found = await call.models.embed(name, [request.prompt])
    return EmbeddingsResponse(found.vectors[0].tolist())


async def tags(_: None, call: Call) -> Tags:
    """List the models."""
    names = call.visible_models()
    return Tags([Tag(name + TAG * (":" not in name), name, call.models.size_bytes(name)) for name in names])


async def show_version(_: None, call: Call) -> dict[str, str]:
    """The version of the server."""
    return {"version": version("twinvec")}


def plain_name(name: str | None) -> str | None:
    """A model's name without the tag that clients add."""
    return None if name is None else name.removesuffix(TAG)


ENDPOINTS = (
    Endpoint("POST", ("/api/embed",), embed, DIALECT, EmbedRequest, EmbedResponse),
    Endpoint("POST", ("/api/embeddings",), embeddings, DIALECT, EmbeddingsRequest, EmbeddingsResponse),
    Endpoint("GET", ("/api/tags",), tags, DIALECT, None, Tags),
    Endpoint("GET", ("/api/version",), show_version, DIALECT, None, dict[str, str]),
)
