"""SBERT-WK: one vector of a text from all layers of a model, without training (Wang and Kuo, 2020, arXiv 2002.06652).

A layer's vector of a token counts the more, the less it agrees with its neighbour layers (alignment) and the more of it
they do not span (novelty); a token counts the more, the more its vector moves from layer to layer (importance). All of
that depends on the cosines between a token's layers alone, so one small matrix per token replaces the paper's QR or SVD
of every window.

``layers`` below are all states of a model, embedding layer first; ``states`` those that are read, ``(layers, ...,
width)``. Cosines and weights have their layers first too: ``(layers, layers, ...)`` and ``(layers, ...)``.

Where a weight is not defined, all layers (or tokens) count alike, each case for itself: a layer without any context
(one layer; in mode "reference" also no more layers than the window), a mean cosine to the context that is not positive,
layers that are all alike, and for the importance less than three layers, or tokens that do not move.
"""

from twinvec.wk.settings import WKSettings
from twinvec.wk.vectors import read_tokens, sentence_vectors, word_vectors
from twinvec.wk.weights import LayerWeights, layer_cosines, layer_weights, token_importance
from twinvec.wk.windows import layer_windows, window_table

__all__ = [
    "LayerWeights",
    "WKSettings",
    "layer_cosines",
    "layer_weights",
    "layer_windows",
    "read_tokens",
    "sentence_vectors",
    "token_importance",
    "window_table",
    "word_vectors",
]
