"""The dialect of OpenAI, which most clients speak. Voyage's use the same paths with some fields of their own."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal

import msgspec

from twinvec.choices import Role
from twinvec.embedder import Embedder, ModelEmbedder
from twinvec.errors import InputError
from twinvec.server.problems import Dialect, Problem
from twinvec.server.wire import Call, Endpoint
from twinvec.types import Array
from twinvec.vectors import quantize_vectors

__all__ = ["DIALECT", "ENDPOINTS", "Usage", "as_base64"]

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
TOKEN_IDS = (
    "'input' holds token ids. They belong to the tokenizer of another model and would give wrong vectors here. Send "
    "texts: with langchain-openai, set check_embedding_ctx_length=False."
)


def error_body(problem: Problem, status: int) -> object:
    """An error as OpenAI's clients expect it; ``detail`` is for Voyage's."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": problem.message, "type": kind, "param": problem.param, "code": problem.kind}
    return {"error": error, "detail": problem.message}


DIALECT = Dialect("openai", error_body)

Ids = list[int]


class EmbeddingRequest(msgspec.Struct):
    """``input`` is one text or several, or token ids if the server accepts them. The last fields are Voyage's."""

    input: str | list[str | int | Ids]
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None
    input_type: Literal["query", "document"] | None = None
    output_dimension: int | None = None
    output_dtype: Literal["float", "int8", "uint8", "binary", "ubinary"] | None = None
    truncation: bool | None = True


class EmbeddingItem(msgspec.Struct):
    """One vector, as numbers or as base64 of its little-endian bytes."""

    index: int
    embedding: list[float] | str
    object: str = "embedding"


class Usage(msgspec.Struct):
    """Number of tokens."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(msgspec.Struct):
    """Vectors in the order of the texts."""

    data: list[EmbeddingItem]
    model: str
    usage: Usage
    object: str = "list"


class ModelItem(msgspec.Struct):
    """One model. ``job`` is embedding or scoring; the rest describes a single model, for Twinvec's client.

    ``identity`` changes whenever the vectors or scores could; vectors of the same ``space`` can be compared.
    """

    id: str
    job: str
    object: str = "model"
    created: int = 0
    owned_by: str = "twinvec"
    identity: str | msgspec.UnsetType | None = msgspec.UNSET
    space: str | msgspec.UnsetType | None = msgspec.UNSET
    width: int | msgspec.UnsetType | None = msgspec.UNSET
    similarity: str | msgspec.UnsetType | None = msgspec.UNSET


class ModelList(msgspec.Struct):
    """All models."""

    data: list[ModelItem]
    object: str = "list"


async def embeddings(request: EmbeddingRequest, call: Call) -> EmbeddingResponse:
    """Embed one text or several."""
    name = call.model(request.model, "embedding")
    texts = call.texts(await as_texts(request.input, name, call), "input")
    role: Role = request.input_type or "text"
    width = request.dimensions or request.output_dimension
    found = await call.models.embed(name, texts, role=role, width=width, truncate=request.truncation is not False)
    output: Any = request.output_dtype or "float"
    vectors = quantize_vectors(found.vectors, "float32" if output == "float" else output)
    rows = as_base64(vectors) if request.encoding_format == "base64" else vectors.tolist()
    data = [EmbeddingItem(index, row) for index, row in enumerate(rows)]
    return EmbeddingResponse(data, name, Usage(found.n_read, found.n_read))


async def models(_: None, call: Call) -> ModelList:
    """List the models."""
    return ModelList([ModelItem(name, call.models.job(name)) for name in call.visible_models()])


async def model(_: None, call: Call) -> ModelItem:
    """Describe one model."""
    name = call.path["name"]
    if name not in call.visible_models():
        raise Problem("unknown_model", f"There is no model {name[:200]!r}.", "model")
    about = await call.models.describe(name)
    return ModelItem(name, call.models.job(name), **about._asdict())


def as_base64(vectors: Array) -> list[str]:
    """Vectors as base64 of their little-endian bytes."""
    return [b64encode(row.tobytes()).decode() for row in vectors.astype(vectors.dtype.newbyteorder("<"))]


async def as_texts(given: str | list[str | int | Ids], name: str, call: Call) -> str | list[str]:
    """The texts of a request; token ids are refused, or turned into texts by the model's own tokenizer."""
    if isinstance(given, str):
        return given
    if all(isinstance(each, str) for each in given):
        return [each for each in given if isinstance(each, str)]
    if not call.service.settings.accept_token_ids:
        raise Problem("invalid", TOKEN_IDS, "input")
    rows = [[each for each in given if isinstance(each, int)]] if isinstance(given[0], int) else given
    if not all(isinstance(row, list) and (row is not given) for row in rows) or isinstance(given[0], str):
        raise Problem("invalid", "'input' mixes texts and token ids.", "input")
    return await call.models.run(decoded, await call.models.embedder(name), rows)


def decoded(embedder: Embedder, rows: list[Any]) -> list[str]:
    """The texts of token ids of the model's own tokenizer."""
    if not isinstance(embedder, ModelEmbedder):
        raise InputError("This model has no tokenizer, so it cannot read token ids.", hint="Send texts.")
    tokenizer = embedder.encoder.tokenizer
    most = tokenizer.n_vocabulary
    if any(not 0 <= id_ < most for row in rows for id_ in row):
        raise InputError(f"Token ids of this model are 0 to {most - 1}.")
    return [str(text) for text in tokenizer.fast.decode_batch(rows)]


ENDPOINTS = (
    Endpoint("POST", ("/v1/embeddings", "/embeddings"), embeddings, DIALECT, EmbeddingRequest, EmbeddingResponse),
    Endpoint("GET", ("/v1/models", "/models"), models, DIALECT, None, ModelList),
    Endpoint("GET", ("/v1/models/{name:path}", "/models/{name:path}"), model, DIALECT, None, ModelItem),
)
