"""One scale for all vectors, learned on the training rows only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twinvec.types import Array, Vectors

__all__ = ["Scale", "fit_scale"]


@dataclass(frozen=True, eq=False)
class Scale:
    """Subtract ``mean``, ``(width,)``, then divide by the one number ``size``."""

    mean: Array
    size: float

    def apply(self, features: Vectors) -> Vectors:
        """Scaled features, ``(n, width)`` to the same, float32 and contiguous."""
        return np.ascontiguousarray((features - self.mean) / self.size, dtype=np.float32)


def fit_scale(features: Vectors) -> Scale:
    """The scale after which ``(n, width)`` has mean 0 per column and mean square 1 over all its entries.

    Columns keep their relative sizes (no whitening), but long and short vectors meet the same penalties: SentEval
    scales nothing, so its fixed grid regularises vectors of length 1 far more than raw BERT vectors of length 15.

    >>> fit_scale(np.array([[1.0, 5.0], [3.0, 5.0]])).apply(np.array([[4.0, 5.0]])).round(1).tolist()
    [[2.799999952316284, 0.0]]
    """
    mean = features.mean(axis=0, dtype=np.float64)
    size = float(np.sqrt(np.mean(np.square(features - mean))))
    return Scale(mean, size or 1.0)
