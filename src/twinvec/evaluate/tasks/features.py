"""Features of texts, or of pairs of texts, for a model that is trained on frozen vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinvec.evaluate.tasks.embed import Embed, embed_once
from twinvec.types import Vectors

__all__ = ["features_of", "pair_features"]


def pair_features(left: Vectors, right: Vectors) -> Vectors:
    """``[|u - v|, u * v]``, as Tai et al. (2015) and SentEval have it: two ``(n, width)`` give ``(n, 2 * width)``.

    >>> pair_features(np.array([[1.0, 2.0]]), np.array([[3.0, 2.0]])).tolist()
    [[2.0, 0.0, 3.0, 4.0]]
    """
    return np.concatenate([np.abs(left - right), left * right], axis=1)


def features_of(embed: Embed, texts: Sequence[str], *, others: Sequence[str] = ()) -> Vectors:
    """The vectors of single texts, ``(n, width)``, or with ``others`` the features of the pairs."""
    if others:
        return pair_features(*embed_once(embed, texts, others))
    return embed_once(embed, texts)[0]
