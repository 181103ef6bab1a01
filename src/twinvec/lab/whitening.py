"""Whitening: vectors whose values do not correlate and vary alike (Su et al., 2021, arXiv 2103.15316).

The covariance is shrunk towards equal variances by as much as the number of texts asks for (Ledoit and Wolf, 2004, "A
well-conditioned estimator for large-dimensional covariance matrices"). Without that, fewer texts than values would
put all of them at the same distance of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError
from twinvec.types import Vectors

__all__ = ["Whitening", "fit_whitening", "shrunk_covariance"]

Numbers = NDArray[np.float64]

LEAST_SPREAD = 1e-10  # variance of all values by the mean squared length; float32 can show no less


@dataclass(frozen=True, eq=False)
class Whitening:
    """``vectors @ matrix.T + bias``; ``matrix`` is ``(width, width)``, ``bias`` is ``(width,)``."""

    matrix: Vectors
    bias: Vectors

    def __call__(self, vectors: Vectors) -> Vectors:
        """Whitened vectors: ``(n, width)`` to the same."""
        return np.asarray(vectors @ self.matrix.T + self.bias)


def fit_whitening(vectors: Vectors) -> Whitening:
    """The whitening of these vectors, ``(n, width)``."""
    numbers = vectors.astype(np.float64)
    mean = numbers.mean(axis=0)
    covariance = shrunk_covariance(numbers - mean)
    if np.trace(covariance) <= LEAST_SPREAD * (numbers**2).sum(axis=1).mean():
        raise InputError("The vectors of all texts are equal, so they cannot be whitened.")
    # With the inverse of a Cholesky factor, as any rotation of it gives the same cosines.
    matrix = np.linalg.inv(np.linalg.cholesky(covariance))
    return Whitening(matrix.astype(np.float32), (-matrix @ mean).astype(np.float32))


def shrunk_covariance(centered: Numbers) -> Numbers:
    """Ledoit and Wolf's estimate of the covariance of centered values, ``(n, width)`` to ``(width, width)``."""
    n, width = centered.shape
    plain = centered.T @ centered / n
    middle = np.trace(plain) / width
    distance = (plain**2).sum() - width * middle**2  # squared, of the plain estimate to equal variances
    error = ((centered**2).sum(axis=1) ** 2).sum() / n**2 - (plain**2).sum() / n  # squared, of the plain estimate
    share = min(error / distance, 1.0) if distance > 0 else 1.0
    return np.asarray((1 - share) * plain + share * middle * np.eye(width))
