"""Vectors of words and of texts, from all layers and their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinvec.types import Array
from twinvec.wk.settings import WKSettings
from twinvec.wk.weights import layer_cosines, layer_weights, token_importance

__all__ = ["read_tokens", "sentence_vectors", "word_vectors"]


def word_vectors(states: Array, weights: NDArray[np.float64]) -> Array:
    """Sum of the layers' vectors by their weights: ``(layers, ..., width), (layers, ...) -> (..., width)``."""
    return np.asarray(np.einsum("l...w,l...->...w", states, weights.astype(states.dtype)))


def read_tokens(mask: Array, settings: WKSettings) -> Array:
    """Which tokens of a mask ``(texts, tokens)`` are read: all, but in mode "reference" not the last of several.

    >>> read_tokens(np.array([[1, 1, 1, 0], [1, 0, 0, 0]]), WKSettings("reference")).tolist()
    [[1, 1, 0, 0], [1, 0, 0, 0]]
    """
    if settings.mode == "paper":
        return mask
    n_after = np.cumsum(mask[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(mask * ((n_after > 1) | (mask.sum(axis=1, keepdims=True) == 1)))


def sentence_vectors(
    layers: Array, mask: Array, settings: WKSettings, *, known: NDArray[np.float64] | None = None
) -> Array:
    """Vectors of texts: ``(layers + 1, texts, tokens, width), (texts, tokens) -> (texts, width)``.

    ``mask`` is 1 on the tokens to read; a text without any gets zeros. Sums are taken in the type of ``layers``.
    ``known`` are the cosines between all layers, for one who reads the same states in several ways.
    """
    start = settings.start(len(layers) - 1)
    states = layers[start:]
    cosines = layer_cosines(states) if known is None else known[start:, start:]
    weights = layer_weights(cosines, settings).combined * token_importance(cosines, read_tokens(mask, settings))
    return np.asarray(np.einsum("lntw,lnt->nw", states, weights.astype(states.dtype)))
