"""The answer of an OpenAI-compatible server, as vectors: floats or base64, in the order of their indexes."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from twinvec.errors import InputError
from twinvec.types import Array

__all__ = ["answered_vectors"]


def answered_vectors(body: bytes, n_texts: int, *, request: str) -> Array:
    """The vectors of an answer, ``(n_texts, width)``; errors begin with ``request``.

    >>> body = b'{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": "AACAPwAAAEA="}]}'
    >>> answered_vectors(body, 2, request="Request 1").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    try:
        answer = json.loads(body)
    except ValueError as error:
        start = body[:60].decode("utf-8", errors="replace")
        raise InputError(f"{request}: the answer is not JSON: {start!r}.", hint="Check the address.") from error
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InputError(f"{request}: the answer has no list 'data'.", hint="The server must speak /v1/embeddings.")
    if len(items) != n_texts:
        raise InputError(f"{request}: {len(items)} vectors came back for {n_texts} texts.")
    places = [item.get("index", place) for place, item in enumerate(items)]
    if sorted(map(str, places)) != sorted(map(str, range(n_texts))):
        raise InputError(f"{request}: the indexes of the answer are not 0 to {n_texts - 1}.")
    rows = [_row(item.get("embedding"), place, request=request) for place, item in zip(places, items, strict=True)]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise InputError(f"{request}: the vectors have different widths: {', '.join(map(str, widths))}.")
    vectors = np.empty((n_texts, widths[0] if widths else 0), dtype=np.float32)
    vectors[places] = rows
    return vectors


def _row(value: Any, place: int, *, request: str) -> Array:  # noqa: ANN401 - whatever the server sent
    try:
        if isinstance(value, str):
            row = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        else:
            row = np.array(value, dtype=np.float32)
    except (binascii.Error, ValueError, TypeError) as error:
        raise InputError(f"{request}: vector {place} is neither numbers nor base64 of them: {error}.") from error
    if row.ndim != 1 or not row.size:
        raise InputError(f"{request}: vector {place} is not a list of numbers.")
    return row
