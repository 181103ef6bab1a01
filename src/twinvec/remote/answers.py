"""What servers answer: vectors, scores and lists of models. Nothing in them is trusted."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import SIMILARITY_NAMES
from twinvec.errors import InputError
from twinvec.json_checks import parse_json
from twinvec.scorer import checked_scores
from twinvec.types import Array
from twinvec.vectors import number_row

__all__ = ["ServerModel", "parse_model", "parse_models", "parse_scores", "parse_vectors"]

MAX_WIDTH = 1 << 20
MAX_NAME = 500  # characters


def parse_vectors(body: bytes, n_texts: int, *, request: str) -> Array:
    """The vectors of a response, ``(n_texts, width)``; error messages begin with ``request``.

    >>> body = b'{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": "AACAPwAAAEA="}]}'
    >>> parse_vectors(body, 2, request="Request 1").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    items, indices = _items(_parsed(body, request), "data", n_texts, "vectors", request=request)
    rows = [_row(item.get("embedding"), index, request=request) for index, item in zip(indices, items, strict=True)]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise InputError(f"{request}: the vectors have different widths: {', '.join(map(str, widths))}.")
    vectors = np.empty((n_texts, widths[0] if widths else 0), dtype=np.float64)
    with np.errstate(invalid="ignore"):  # for a signaling NaN; NaN is refused later
        vectors[indices] = rows
    return vectors


def _row(value: Any, index: int, *, request: str) -> Array:  # noqa: ANN401 - whatever the server sent
    row: Array | None
    try:
        is_packed = isinstance(value, str)
        row = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4") if is_packed else number_row(value)
    except ValueError:  # includes binascii.Error
        row = None
    if row is None or not row.size:
        raise InputError(f"{request}: vector {index} is neither a list of numbers nor base64 of float32.")
    return row


def parse_scores(body: bytes, n_pairs: int, *, request: str) -> NDArray[np.float32]:
    """The scores of a response, ``(n_pairs,)``, of either kind: /score has ``data``, /rerank has ``results``.

    >>> parse_scores(b'{"data": [{"index": 1, "score": 2}, {"index": 0, "score": 0.5}]}', 2, request="R").tolist()
    [0.5, 2.0]
    >>> parse_scores(b'{"results": [{"index": 0, "relevance_score": 1}]}', 1, request="R").tolist()
    [1.0]
    """
    parsed = _parsed(body, request)
    key, field = ("results", "relevance_score") if "results" in parsed else ("data", "score")
    items, indices = _items(parsed, key, n_pairs, "scores", request=request)
    values = number_row([item.get(field) for item in items])
    if values is None:
        raise InputError(f"{request}: a {field!r} in the response is not a number.")
    scores = np.empty(n_pairs, dtype=np.float64)
    scores[indices] = values
    with np.errstate(over="ignore"):  # infinity is refused
        return checked_scores(scores, n_pairs, source=request)


def _parsed(body: bytes, request: str) -> dict[str, Any]:
    response = parse_json(body, source=f"{request}: the response")
    return response if isinstance(response, dict) else {}


def _items(
    parsed: Mapping[str, Any], key: str, n: int, what: str, *, request: str
) -> tuple[list[dict[str, Any]], Sequence[int]]:
    """The items of a response and their indices, which are 0 to n - 1 in any order."""
    items = parsed.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        hint = "The server must be compatible with OpenAI's /v1/embeddings, or for scores with /score or /rerank."
        raise InputError(f"{request}: the response has no list {key!r}.", hint=hint)
    if len(items) != n:
        asked = "texts" if what == "vectors" else "pairs"
        raise InputError(f"{request}: the server returned {len(items)} {what} for {n} {asked}.")
    indices = [item.get("index", index) for index, item in enumerate(items)]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(n)):
        raise InputError(f"{request}: the indices in the response are not 0 to {n - 1}.")
    return items, indices


@dataclass(frozen=True, slots=True)
class ServerModel:
    """A model of a server.

    Only Twinvec's own server states its job (embedding or scoring) and, in the description of a single model, what
    decides the vectors or scores (``identity``), the vector space, and its similarity.
    """

    name: str
    job: str | None = None
    identity: str | None = None
    space: str | None = None
    width: int | None = None
    similarity: str = "cosine"

    @property
    def is_twinvec(self) -> bool:
        """Whether a Twinvec server runs it."""
        return self.job is not None


def parse_models(body: bytes, *, request: str) -> list[ServerModel]:
    """The models that a server lists, its default first.

    >>> parse_models(b'{"data": [{"id": "minilm"}]}', request="Request")[0].name
    'minilm'
    """
    items = _parsed(body, request).get("data")
    if not isinstance(items, list):
        raise InputError(f"{request}: the response has no list 'data'.")
    return [_model(item) for item in items if isinstance(item, dict) and _text(item, "id")]


def parse_model(body: bytes, *, request: str) -> ServerModel:
    """The description of one model.

    >>> parse_model(b'{"id": "minilm", "job": "embedding", "width": 384}', request="Request").width
    384
    """
    item = _parsed(body, request)
    if not _text(item, "id"):
        raise InputError(f"{request}: the response has no name of a model.")
    return _model(item)


def _model(item: Mapping[str, Any]) -> ServerModel:
    width, similarity = item.get("width"), _text(item, "similarity")
    return ServerModel(
        name=item["id"],
        job=job if (job := _text(item, "job")) in ("embedding", "scoring") else None,
        identity=_text(item, "identity"),
        space=_text(item, "space"),
        width=width if type(width) is int and 0 < width <= MAX_WIDTH else None,
        similarity=similarity if similarity in SIMILARITY_NAMES else "cosine",
    )


def _text(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable() else None
