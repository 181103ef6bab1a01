"""What a task needs of an encoder: a function from texts to vectors, asked once for each different text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from twinvec.errors import InputError
from twinvec.types import Vectors

__all__ = ["Embed", "embed_once"]

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]  # n texts to (n, width)


def embed_once(embed: Embed, *columns: Sequence[str]) -> list[Vectors]:
    """The vectors of several lists of texts, ``(n, width)`` each, embedding every different text once.

    >>> asked = []
    >>> def lengths(texts):
    ...     asked.extend(texts)
    ...     return np.array([[len(text)] for text in texts], dtype=np.float32)
    >>> [vectors.ravel().tolist() for vectors in embed_once(lengths, ["a", "bb"], ["bb", "a"])], asked
    ([[1.0, 2.0], [2.0, 1.0]], ['a', 'bb'])
    """
    place: dict[str, int] = {}
    for column in columns:
        for text in column:
            place.setdefault(text, len(place))
    vectors = np.asarray(embed(list(place)), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(place):
        raise InputError(
            f"The encoder gave an array of shape {vectors.shape} for {len(place)} texts.",
            hint="It must give one row of numbers per text.",
        )
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        raise InputError(
            f"The vector of {list(place)[wrong[0]]!r:.80} holds NaN or infinity.", hint="Check the model's weights."
        )
    return [vectors[[place[text] for text in column]] for column in columns]
