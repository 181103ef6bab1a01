"""One text as SBERT-WK sees it: how much each layer of each token counts, and each token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinvec.encoder import Encoder
from twinvec.errors import InputError
from twinvec.wk import WKSettings, layer_cosines, layer_weights, read_tokens, token_importance

__all__ = ["TextPicture", "picture_text"]


@dataclass(frozen=True, eq=False)
class TextPicture:
    """The weights of a text's layers, ``(layers, tokens)`` from ``layer_start`` on, and of its tokens, ``(tokens,)``.

    Over the layers of a token the weights sum to 1, and so does ``importance`` over the tokens.
    """

    model: str
    text: str
    tokens: tuple[str, ...]
    layer_start: int
    weights: NDArray[np.float64]
    importance: NDArray[np.float64]


def picture_text(encoder: Encoder, text: str, *, model: str, settings: WKSettings | None = None) -> TextPicture:
    """The picture of one text; special tokens are part of it."""
    settings = settings or WKSettings()
    layers = encoder.encode_layers(text, prompt="")[0]
    if not layers.size:
        raise InputError(f"{model} finds no token in the text {text!r:.80}.", hint="Give a text that is not empty.")
    ids = encoder.tokenizer.ids([text])[0]
    room = layers.shape[1] - encoder.tokenizer.n_special
    tokens = encoder.tokenizer.tokens(encoder.tokenizer.dress(encoder.tokenizer.cut(ids, room)))
    start = settings.start(len(layers) - 1)
    cosines = layer_cosines(layers[start:])
    mask = read_tokens(np.ones((1, len(tokens)), dtype=np.int64), settings)
    importance = token_importance(cosines[:, :, None], mask)[0]
    return TextPicture(model, text, tuple(tokens), start, layer_weights(cosines, settings).combined, importance)
