"""Weights of layers and of tokens, from the cosines between a token's layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.types import Array
from twinvec.wk.settings import WKSettings
from twinvec.wk.windows import layer_windows, window_table

__all__ = ["LayerWeights", "layer_cosines", "layer_weights", "squared_novelty", "token_importance"]

Numbers = NDArray[np.float64]

# States are float32, whose rounding moves a cosine by some 1e-7: what is smaller is no signal.
LEAST_COSINE = 1e-6  # mean cosine to the context
LEAST_NOVELTY = 1e-6  # of all layers together, as a share of a vector's length
LEAST_PIVOT = 1e-12  # squared share of a vector outside of the span of others
LEAST_VARIANCE = 1e-12  # of neighbour layers' cosines, over all tokens of a text


class LayerWeights(NamedTuple):
    """Weights of a token's layers, ``(layers, ...)`` each; over the layers they sum to 1."""

    alignment: Numbers
    novelty: Numbers
    combined: Numbers


def layer_cosines(states: Array) -> Numbers:
    """Cosines between all layers' vectors of each token: ``(layers, ..., width)`` to ``(layers, layers, ...)``.

    A zero vector has cosine 0 to all, itself included.

    >>> layer_cosines(np.array([[3.0, 4.0], [4.0, 3.0]])).round(2).tolist()
    [[1.0, 0.96], [0.96, 1.0]]
    """
    n_layers, *shape, width = states.shape
    vectors = states.reshape(n_layers, -1, width).transpose(1, 0, 2).astype(np.float64, order="C")
    # tokens last: everything after this runs along them
    gram = np.ascontiguousarray((vectors @ vectors.transpose(0, 2, 1)).transpose(1, 2, 0))
    lengths = np.sqrt(gram[np.arange(n_layers), np.arange(n_layers)])
    lengths[lengths == 0] = 1
    gram /= lengths[:, None]
    gram /= lengths[None, :]
    return gram.reshape(n_layers, n_layers, *shape)


def layer_weights(cosines: Numbers, settings: WKSettings) -> LayerWeights:
    """Weights of the layers from their cosines: ``(layers, layers, ...)`` to ``(layers, ...)`` each."""
    n_layers = len(cosines)
    windows = layer_windows(n_layers, settings)
    uniform = np.full(cosines.shape[1:], 1 / n_layers)
    if not all(windows):
        return LayerWeights(uniform, uniform, uniform)
    outside = squared_novelty(cosines, windows)
    similarity = np.stack([cosines[layer, window].mean(axis=0) for layer, window in enumerate(windows)])
    is_defined = (similarity > LEAST_COSINE).all(axis=0)
    likeness = np.where(is_defined, similarity, 1)
    if settings.mode == "reference":
        # Its cosine is to the projection on the context, and it divides by the size of the window.
        sizes = np.array([1 + len(window) for window in windows], dtype=np.float64)
        likeness /= np.sqrt(np.maximum(1 - outside, LEAST_COSINE**2))
        likeness *= sizes.reshape(-1, *[1] * (likeness.ndim - 1))
    alignment = np.where(is_defined, _shares(1 / likeness), uniform)
    novelty = np.sqrt(outside)
    is_new = novelty.sum(axis=0) > LEAST_NOVELTY
    novelty = np.where(is_new, _shares(np.where(is_new, novelty, 1)), uniform)
    return LayerWeights(alignment, novelty, settings.omega * alignment + (1 - settings.omega) * novelty)


def _shares(values: Numbers) -> Numbers:
    return np.asarray(values / values.sum(axis=0))


def squared_novelty(cosines: Numbers, windows: list[list[int]]) -> Numbers:
    """The squared share of each layer's vector outside the span of its context: ``(layers, ...)``, 0 to 1.

    Symmetric elimination of the context from every window's cosines, all at once. A context vector that depends on
    those before it, or an empty place of a window, has no pivot and takes nothing away.
    """
    table, is_filled = window_table(windows)
    n_layers, size = table.shape
    systems = cosines.reshape(n_layers, n_layers, -1)[table[:, :, None], table[:, None, :]]
    systems[~(is_filled[:, :, None] & is_filled[:, None, :])] = 0  # (layers, size, size, tokens)
    for place in range(size - 1):
        pivot = systems[:, place, place]
        column = systems[:, place + 1 :, place]
        share = column / np.where(pivot > LEAST_PIVOT, pivot, np.inf)[:, None]
        systems[:, place + 1 :, place + 1 :] -= share[:, :, None] * column[:, None, :]
    outside = systems[:, -1, -1].clip(0, 1)
    return np.where(outside > LEAST_PIVOT, outside, 0).reshape(cosines.shape[1:])


def token_importance(cosines: Numbers, mask: Array) -> Numbers:
    """Weights of a text's tokens: ``(layers, layers, texts, tokens), (texts, tokens) -> (texts, tokens)``.

    The variance of the cosines of neighbour layers, as shares over the tokens of ``mask``. A text without any has 0.
    """
    steps = np.arange(len(cosines) - 1)
    real = mask.astype(np.float64)
    moved = cosines[steps, steps + 1].var(axis=0) * real if len(cosines) > 2 else np.zeros(mask.shape)
    is_moving = moved.sum(axis=1, keepdims=True) > LEAST_VARIANCE
    counted = np.where(is_moving, moved, real)
    total = counted.sum(axis=1, keepdims=True)
    return np.asarray(counted / np.where(total > 0, total, 1))
