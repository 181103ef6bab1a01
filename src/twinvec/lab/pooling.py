"""The poolings of a model folder in numpy, over many layers at once; the engine has the same inside its graph.

``states`` are ``(..., texts, tokens, width)`` and ``mask`` is ``(texts, tokens)``, 1 on what is read; each gives
``(..., texts, width)``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinvec.types import Ids, Vectors

__all__ = ["POOLERS", "pool"]

Weights = NDArray[np.float32]  # (texts, tokens)


def pool(states: Vectors, mask: Ids, modes: tuple[str, ...]) -> Vectors:
    """Pooled states; those of several modes are joined in their order.

    >>> states = np.array([[[1.0], [3.0], [99.0]]], dtype=np.float32)
    >>> pool(states, np.array([[1, 1, 0]]), ("mean", "max")).tolist()
    [[2.0, 3.0]]
    """
    return np.concatenate([POOLERS[mode](states, mask) for mode in modes], axis=-1)


def _sum(states: Vectors, weights: Weights) -> Vectors:
    return np.asarray((weights[:, None, :] @ states)[..., 0, :])


def _total(weights: Weights) -> Weights:
    # at least one token, also for a text of prompt only
    return np.asarray(np.maximum(weights.sum(axis=1, keepdims=True), 1))


def _mean(states: Vectors, mask: Ids) -> Vectors:
    weights = mask.astype(np.float32)
    return np.asarray(_sum(states, weights) / _total(weights))


def _mean_sqrt(states: Vectors, mask: Ids) -> Vectors:
    weights = mask.astype(np.float32)
    return np.asarray(_sum(states, weights) / np.sqrt(_total(weights)))


def _weighted_mean(states: Vectors, mask: Ids) -> Vectors:
    weights = mask.astype(np.float32) * np.arange(1, mask.shape[1] + 1, dtype=np.float32)
    return np.asarray(_sum(states, weights) / _total(weights))


def _max(states: Vectors, mask: Ids) -> Vectors:
    lowest = np.finfo(np.float32).min
    return np.asarray(np.where(mask[:, :, None] == 1, states, lowest).max(axis=-2))


def _first(states: Vectors, mask: Ids) -> Vectors:
    return np.asarray(states[..., np.arange(len(mask)), mask.argmax(axis=1), :])


def _last(states: Vectors, mask: Ids) -> Vectors:
    places = (mask * np.arange(1, mask.shape[1] + 1)).argmax(axis=1)
    return np.asarray(states[..., np.arange(len(mask)), places, :])


POOLERS: dict[str, Callable[[Vectors, Ids], Vectors]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
