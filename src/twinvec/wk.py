"""SBERT-WK: a text vector from all layers of a model, without training (Wang and Kuo, 2020, arXiv 2002.06652).

A layer of a token gets more weight the less it agrees with its neighboring layers (alignment), and the larger its part
outside their span (novelty). A token gets more weight the more its vector changes between layers (importance). All of
this depends only on the cosines between a token's layers, so one small matrix per token replaces the paper's QR or SVD
of every window.

``layers`` are all states of a model, embedding layer first; ``states`` are the layers in use, ``(layers, ...,
width)``. Cosines and weights also have layers first: ``(layers, layers, ...)`` and ``(layers, ...)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import WKMode
from twinvec.errors import InputError, check_name
from twinvec.types import Array

__all__ = [
    "WKSettings",
    "layer_cosines",
    "layer_weights",
    "layer_windows",
    "read_tokens",
    "sentence_vectors",
    "squared_novelty",
    "token_importance",
    "window_table",
    "word_vectors",
]


@dataclass(frozen=True, slots=True)
class WKSettings:
    """How to weight layers and tokens; the defaults are the paper's.

    Args:
        mode: "paper" (its formulas), or "reference" (what the authors' code computes: the last token is not read, the
            left context is complete or empty, alignment is measured within the context's span and gives the outer
            layers more weight).
        layer_start: the first layer to use, 0 being the embeddings; by default a third of the layers, the paper's
            4 of 12.
        window: number of context layers on each side.
        omega: share of alignment in the weights; 0 means novelty only.
    """

    mode: WKMode = "paper"
    layer_start: int | None = None
    window: int = 2
    omega: float = 0.5

    def __post_init__(self) -> None:
        check_name("mode", self.mode, get_args(WKMode))
        for name, value, least in (("layer_start", self.layer_start, 0), ("window", self.window, 1)):
            is_default = value is None and name == "layer_start"
            if not is_default and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
        if isinstance(self.omega, bool) or not isinstance(self.omega, (int, float)) or not 0 <= self.omega <= 1:
            raise InputError(f"omega must be a number from 0 to 1, got {self.omega!r}.")

    def start(self, n_layers: int) -> int:
        """The first layer in use, for a model with ``n_layers`` (without the embeddings).

        >>> WKSettings().start(12), WKSettings().start(6), WKSettings(layer_start=5).start(6)
        (4, 2, 5)
        """
        start = n_layers // 3 if self.layer_start is None else self.layer_start
        if start > n_layers:
            raise InputError(
                f"layer_start={start} is beyond the last of {n_layers} layers.", hint=f"Use 0 to {n_layers}."
            )
        return start


def layer_windows(n_layers: int, settings: WKSettings) -> list[list[int]]:
    """The context of each layer: its neighbors within the window, left ones first.

    The authors' code keeps the left side only when it is complete.

    >>> layer_windows(4, WKSettings())
    [[1, 2], [0, 2, 3], [0, 1, 3], [1, 2]]
    >>> layer_windows(4, WKSettings("reference"))
    [[1, 2], [2, 3], [0, 1, 3], [1, 2]]
    """
    windows = []
    for layer in range(n_layers):
        first = layer - settings.window
        left = range(max(first, 0), layer) if first >= 0 or settings.mode == "paper" else range(0)
        windows.append([*left, *range(layer + 1, min(layer + settings.window + 1, n_layers))])
    return windows


def window_table(windows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The windows as a padded table with each layer itself last, and its mask: both ``(layers, longest + 1)``.

    >>> [each.tolist() for each in window_table([[1, 2], [2]])]
    [[[1, 2, 0], [2, 0, 1]], [[True, True, True], [True, False, True]]]
    """
    longest = max(map(len, windows))
    table = np.zeros((len(windows), longest + 1), dtype=np.int64)
    is_filled = np.zeros(table.shape, dtype=np.bool_)
    for layer, window in enumerate(windows):
        table[layer, : len(window)] = window
        is_filled[layer, : len(window)] = True
    table[:, -1] = np.arange(len(windows))
    is_filled[:, -1] = True
    return table, is_filled


Numbers = NDArray[np.float64]

# States are float32, whose rounding changes a cosine by about 1e-7: anything smaller is noise.
LEAST_COSINE = 1e-6  # mean cosine to the context
LEAST_NOVELTY = 1e-6  # summed over layers, as a share of a vector's length
LEAST_PIVOT = 1e-12  # squared share of a vector outside the span of others
LEAST_VARIANCE = 1e-12  # of the cosines of adjacent layers, summed over a text


class LayerWeights(NamedTuple):
    """Weights of a token's layers, ``(layers, ...)`` each; over the layers they sum to 1."""

    alignment: Numbers
    novelty: Numbers
    combined: Numbers


def layer_cosines(states: Array) -> Numbers:
    """Cosines between all layers' vectors of each token: ``(layers, ..., width)`` to ``(layers, layers, ...)``.

    A zero vector has cosine 0 to every vector, itself included.

    >>> layer_cosines(np.array([[3.0, 4.0], [4.0, 3.0]])).round(2).tolist()
    [[1.0, 0.96], [0.96, 1.0]]
    """
    n_layers, *shape, width = states.shape
    vectors = states.reshape(n_layers, -1, width).transpose(1, 0, 2).astype(np.float64, order="C")
    # tokens last: all later steps run along them
    gram = np.ascontiguousarray((vectors @ vectors.transpose(0, 2, 1)).transpose(1, 2, 0))
    lengths = np.sqrt(gram[np.arange(n_layers), np.arange(n_layers)])
    lengths[lengths == 0] = 1
    gram /= lengths[:, None]
    gram /= lengths[None, :]
    return gram.reshape(n_layers, n_layers, *shape)


def layer_weights(cosines: Numbers, settings: WKSettings) -> LayerWeights:
    """Layer weights from the layers' cosines: ``(layers, layers, ...)`` to ``(layers, ...)`` each."""
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
        # Uses the cosine to the projection on the context, and divides by the window size.
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

    Symmetric elimination of the context from the cosines of all windows in parallel. A context vector that depends on
    earlier ones, or the padding of a window, has no pivot and removes nothing.
    """
    table, is_filled = window_table(windows)
    n_layers, size = table.shape
    systems = cosines.reshape(n_layers, n_layers, -1)[table[:, :, None], table[:, None, :]]
    systems[~(is_filled[:, :, None] & is_filled[:, None, :])] = 0  # (layers, size, size, tokens)
    for step in range(size - 1):
        pivot = systems[:, step, step]
        column = systems[:, step + 1 :, step]
        share = column / np.where(pivot > LEAST_PIVOT, pivot, np.inf)[:, None]
        systems[:, step + 1 :, step + 1 :] -= share[:, :, None] * column[:, None, :]
    outside = systems[:, -1, -1].clip(0, 1)
    return np.where(outside > LEAST_PIVOT, outside, 0).reshape(cosines.shape[1:])


def token_importance(cosines: Numbers, mask: Array) -> Numbers:
    """Weights of a text's tokens: ``(layers, layers, texts, tokens), (texts, tokens) -> (texts, tokens)``.

    The variance of the cosines of adjacent layers, normalized over the tokens of ``mask``; 0 for an empty mask.
    """
    steps = np.arange(len(cosines) - 1)
    real = mask.astype(np.float64)
    moved = cosines[steps, steps + 1].var(axis=0) * real if len(cosines) > 2 else np.zeros(mask.shape)
    is_moving = moved.sum(axis=1, keepdims=True) > LEAST_VARIANCE
    counted = np.where(is_moving, moved, real)
    total = counted.sum(axis=1, keepdims=True)
    return np.asarray(counted / np.where(total > 0, total, 1))


def word_vectors(states: Array, weights: NDArray[np.float64]) -> Array:
    """Weighted sum of the layers' vectors: ``(layers, ..., width), (layers, ...) -> (..., width)``."""
    return np.asarray(np.einsum("l...w,l...->...w", states, weights.astype(states.dtype)))


def read_tokens(mask: Array, settings: WKSettings) -> Array:
    """The tokens of a mask ``(texts, tokens)`` to use: all, but mode "reference" drops the last of several.

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

    ``mask`` is 1 on the tokens to use; a text without any gets zeros. Sums use the dtype of ``layers``. ``known`` are
    precomputed cosines between all layers, to read the same states in several ways.
    """
    start = settings.start(len(layers) - 1)
    states = layers[start:]
    cosines = layer_cosines(states) if known is None else known[start:, start:]
    weights = layer_weights(cosines, settings).combined * token_importance(cosines, read_tokens(mask, settings))
    return np.asarray(np.einsum("lntw,lnt->nw", states, weights.astype(states.dtype)))
