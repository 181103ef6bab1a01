"""Explain a vector, or the cosine of two, by tokens and layers. Pure functions on states.

With mean pooling and SBERT-WK, a vector is a sum over tokens, and so is the cosine of two vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError
from twinvec.model.folder import WK, ModelFolder, Normalize, Pooling
from twinvec.types import Array, Vectors
from twinvec.wk import layer_cosines, layer_weights, read_tokens, token_importance, word_vectors

__all__ = [
    "Explanation",
    "PairExplanation",
    "WordShare",
    "check_explained",
    "check_sum",
    "explain_pair",
    "explain_states",
    "no_tokens",
    "share_by_word",
]

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """How the tokens and layers of a text contribute to its vector.

    ``alignment``, ``novelty`` and ``combined``, ``(tokens, layers + 1)``, are layer weights; unused layers have weight
    0, and without SBERT-WK the last layer has weight 1. ``word_vectors``, ``(tokens, states' width)``, are the layer
    states summed with the combined weights. ``importance``, ``(tokens,)``, are token weights, 0 for unused tokens.
    ``vector``, ``(width,)``, is the vector of the text.
    """

    text: str
    tokens: tuple[str, ...]
    word_vectors: Vectors
    alignment: Numbers
    novelty: Numbers
    combined: Numbers
    importance: Numbers
    vector: Vectors

    @property
    def parts(self) -> Numbers:
        """The contribution of each token to the vector before scaling: ``(tokens, states' width)``."""
        return self.importance[:, None] * self.word_vectors


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """The cosine of two texts by token pairs: ``contributions``, ``(left tokens, right tokens)``, sum to it."""

    left: Explanation
    right: Explanation
    contributions: Numbers

    @property
    def cosine(self) -> float:
        """The cosine of the two vectors."""
        return float(self.contributions.sum())

    @property
    def of_left(self) -> Numbers:
        """The contribution of each token of the left text; they sum to the cosine."""
        return np.asarray(self.contributions.sum(axis=1))

    @property
    def of_right(self) -> Numbers:
        """The contribution of each token of the right text; they sum to the cosine."""
        return np.asarray(self.contributions.sum(axis=0))

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON: the cosine, each side's tokens, and the contributions of all pairs of tokens."""
        sides = {}
        for name, side, shares in (("left", self.left, self.of_left), ("right", self.right, self.of_right)):
            tokens = [
                {"token": token, "weight": round(float(weight), 6), "contribution": round(float(share), 6)}
                for token, weight, share in zip(side.tokens, side.importance, shares, strict=True)
            ]
            sides[name] = {"text": side.text, "tokens": tokens}
        return {"cosine": round(self.cosine, 6), **sides, "contributions": self.contributions.round(6).tolist()}


def check_explained(folder: ModelFolder) -> None:
    """Raise InputError unless the pooled vector is a weighted sum of token vectors."""
    if folder.is_use:
        raise InputError(
            f"{folder.path} is a Universal Sentence Encoder: its vectors are not sums of token vectors.",
            hint="Use a static model, or a Transformer with mean pooling.",
        )
    if not folder.is_static and isinstance(folder.readout, Pooling) and folder.readout.modes != ("mean",):
        raise InputError(
            f"{folder.path} has {'+'.join(folder.readout.modes)} pooling, which is not a mean of token vectors.",
            hint="Load it with readout='wk' or readout='mean'.",
        )


def check_sum(folder: ModelFolder) -> None:
    """Raise InputError unless the final vector is a sum over tokens."""
    check_explained(folder)
    others = [type(module).__name__ for module in folder.modules[1:] if not isinstance(module, Normalize)]
    if others:
        raise InputError(
            f"{folder.path} has {', '.join(others)} after its pooling, so its vectors are not sums over tokens.",
            hint="Contributions are exact only if nothing but Normalize follows the pooling.",
        )


def explain_states(
    text: str, tokens: Sequence[str], *, layers: Vectors, mask: Array, folder: ModelFolder, vector: Vectors
) -> Explanation:
    """Explain one text: ``layers`` ``(layers + 1, tokens, width)``, ``mask`` ``(tokens,)``, 1 on pooled tokens."""
    alignment, novelty, combined = (np.zeros((len(layers), len(tokens))) for _ in range(3))
    if not folder.is_static and isinstance(folder.readout, WK):
        settings = folder.readout.settings
        start = settings.start(len(layers) - 1)
        cosines = layer_cosines(layers[start:])
        alignment[start:], novelty[start:], combined[start:] = layer_weights(cosines, settings)
        importance = token_importance(cosines[:, :, None], read_tokens(mask[None], settings))[0]
    else:
        alignment[-1] = novelty[-1] = combined[-1] = 1
        importance = mask / max(mask.sum(), 1)
    words = word_vectors(layers, combined)
    names = tuple(normalize("NFC", token) for token in tokens)  # Hangul in syllables, as far as a token has whole ones
    return Explanation(text, names, words, alignment.T, novelty.T, combined.T, importance, vector)


def no_tokens(text: str, width: int) -> Explanation:
    """The explanation of a text without tokens, whose vector is zero."""
    words, weights = np.zeros((0, width), dtype=np.float32), np.zeros((0, 1))
    return Explanation(text, (), words, weights, weights, weights, np.zeros(0), np.zeros(width, dtype=np.float32))


def explain_pair(left: Explanation, right: Explanation) -> PairExplanation:
    """Contributions of all token pairs to the cosine; all 0 if either vector is zero."""
    width = len(left.vector)  # smaller than the states' if vectors are truncated
    one, other = left.parts[:, :width], right.parts[:, :width]
    lengths = np.linalg.norm(one.sum(axis=0)) * np.linalg.norm(other.sum(axis=0))
    return PairExplanation(left, right, one @ other.T / (lengths or 1.0))


class WordShare(NamedTuple):
    """A word of a text, from character ``start`` to before ``end``, and its share of a cosine."""

    start: int
    end: int
    share: float


def share_by_word(text: str, spans: Sequence[tuple[int, int]], shares: Sequence[float]) -> tuple[WordShare, ...]:
    """Add up the shares of tokens by word, in the order of the text; ``spans`` has the word of each token.

    Tokens outside the text, such as special tokens or those of a prompt, have an empty or negative span.

    >>> share_by_word("cats sleep", [(0, 0), (0, 4), (0, 4), (4, 10)], [0.5, 0.25, 0.125, 0.5])
    (WordShare(start=0, end=4, share=0.375), WordShare(start=5, end=10, share=0.5))
    """
    words: dict[tuple[int, int], float] = {}
    for (start, end), share in zip(spans, shares, strict=True):
        word = text[max(start, 0) : max(end, 0)]
        if word.strip():
            first = max(start, 0) + len(word) - len(word.lstrip())
            place = first, first + len(word.strip())
            words[place] = words.get(place, 0.0) + share
    return tuple(WordShare(start, end, share) for (start, end), share in sorted(words.items()))
