"""The answer of an OpenAI-compatible server, as vectors: floats or base64, in the order of their indexes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluate.json_fields import parse_json
from twinvec.evaluate.subjects.subject import number_row
from twinvec.types import Array

__all__ = ["answered_vectors"]


def answered_vectors(body: bytes, n_texts: int, *, request: str) -> Array:
    """The vectors of an answer, ``(n_texts, width)``; errors begin with ``request``.

    >>> body = b'{"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": "AACAPwAAAEA="}]}'
    >>> answered_vectors(body, 2, request="Request 1").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    answer = parse_json(body, source=f"{request}: the answer")
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InputError(f"{request}: the answer has no list 'data'.", hint="The server must speak /v1/embeddings.")
    if len(items) != n_texts:
        raise InputError(f"{request}: {len(items)} vectors came back for {n_texts} texts.")
    places = [item.get("index", place) for place, item in enumerate(items)]
    if not all(type(place) is int for place in places) or sorted(places) != list(range(n_texts)):
        raise InputError(f"{request}: the indexes of the answer are not 0 to {n_texts - 1}.")
    rows = [_row(item.get("embedding"), place, request=request) for place, item in zip(places, items, strict=True)]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise InputError(f"{request}: the vectors have different widths: {', '.join(map(str, widths))}.")
    vectors = np.empty((n_texts, widths[0] if widths else 0), dtype=np.float64)
    with np.errstate(invalid="ignore"):  # of a NaN that signals; NaN is refused later
        vectors[places] = rows
    return vectors


def _row(value: Any, place: int, *, request: str) -> Array:  # noqa: ANN401 - whatever the server sent
    try:
        row = (
            np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
            if isinstance(value, str)
            else number_row(value)
        )
    except ValueError:  # binascii.Error too
        row = None
    if row is None or not row.size:
        raise InputError(f"{request}: vector {place} is neither a list of numbers nor base64 of them.")
    return row
