"""An OpenAI-compatible server as a system under test."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from twinvec.choices import Role
from twinvec.data.http_client import KEY_VARIABLE, Retries, check_address, post
from twinvec.errors import InputError
from twinvec.json_checks import parse_json
from twinvec.types import Array, Vectors
from twinvec.vectors import checked_vectors, number_row

__all__ = ["Endpoint", "EndpointEmbedder"]


def parse_vectors(body: bytes, n_texts: int, *, request: str) -> Array:
    """The vectors of a response, ``(n_texts, width)``; error messages begin with ``request``.

    >>> body = b'{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": "AACAPwAAAEA="}]}'
    >>> parse_vectors(body, 2, request="Request 1").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    response = parse_json(body, source=f"{request}: the response")
    items = response.get("data") if isinstance(response, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InputError(
            f"{request}: the response has no list 'data'.", hint="The server must be compatible with /v1/embeddings."
        )
    if len(items) != n_texts:
        raise InputError(f"{request}: the server returned {len(items)} vectors for {n_texts} texts.")
    indices = [item.get("index", index) for index, item in enumerate(items)]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(n_texts)):
        raise InputError(f"{request}: the indices in the response are not 0 to {n_texts - 1}.")
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


PROBE = "The quick brown fox jumps over the lazy dog, and nobody knows why."
MAX_TIMEOUT_S = 86_400


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server's address and request settings. ``key_variable`` is the environment variable with the API key."""

    address: str
    model: str
    key_variable: str = KEY_VARIABLE
    texts_per_request: int = 64
    timeout_s: float = 60.0
    n_retries: int = 4

    def __post_init__(self) -> None:
        parts = check_address(self.address, example="https://host/v1")
        if parts.query or parts.fragment:
            raise InputError(
                f"The address of {parts.netloc} has a part after '?' or '#', which is not supported.",
                hint="Use an address such as https://host/v1, and put the key in an environment variable.",
            )
        if not self.model:
            raise InputError(f"{self.address}: the model name is missing.", hint="Write https://host/v1#model-name.")
        if self.texts_per_request < 1 or self.n_retries < 0 or not 0 < self.timeout_s <= MAX_TIMEOUT_S:
            raise InputError(
                f"texts_per_request must be at least 1, n_retries at least 0, and timeout_s above 0 and at most "
                f"{MAX_TIMEOUT_S:,} s; got {self.texts_per_request}, {self.n_retries} and {self.timeout_s}."
            )

    @property
    def url(self) -> str:
        """The URL of requests; /embeddings is added unless the address ends in it."""
        base = self.address.rstrip("/")
        return base if base.endswith("/embeddings") else f"{base}/embeddings"


class EndpointEmbedder:
    """A model behind an HTTP server."""

    similarity = "cosine"

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.width: int | None = None
        self._n_requests = 0

    @property
    def name(self) -> str:
        """The model's name and its host."""
        return f"{self.endpoint.model} at {urlsplit(self.endpoint.address).netloc}"

    @cached_property
    def identity(self) -> str:
        """A digest of the address, the model, and the signs of one text's vector.

        That one request checks that the server responds, and detects a different model under the same name, so
        cached vectors are not mixed.
        """
        signs = np.packbits(self.embed([PROBE])[0] > 0).tobytes().hex()
        content = json.dumps([self.endpoint.url, self.endpoint.model, self.width, signs])
        return "endpoint-" + hashlib.sha256(content.encode()).hexdigest()

    @property
    def settings(self) -> dict[str, object]:
        """The request settings, for reports."""
        return asdict(self.endpoint)

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``."""
        step = self.endpoint.texts_per_request
        parts = [self._request(list(texts[start : start + step])) for start in range(0, len(texts), step)]
        return np.concatenate(parts) if parts else np.zeros((0, self.width or 0), dtype=np.float32)

    def _request(self, texts: list[str]) -> Vectors:
        endpoint = self.endpoint
        self._n_requests += 1
        request = f"Request {self._n_requests} ({len(texts)} texts) to {endpoint.url}"
        body = post(
            endpoint.url,
            {"input": texts, "model": endpoint.model, "encoding_format": "base64"},
            key_variable=endpoint.key_variable,
            retries=Retries(endpoint.n_retries, endpoint.timeout_s),
            request=request,
        )
        vectors = checked_vectors(
            parse_vectors(body, len(texts), request=request), texts, width=self.width, source=request
        )
        self.width = int(vectors.shape[1])
        return vectors
