"""L2-regularized softmax regression for several strengths together, in numpy."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.types import Array, Vectors

__all__ = ["STRENGTHS", "Scale", "fit_scale", "fit_softmax", "one_hot", "softmax"]


@dataclass(frozen=True, eq=False)
class Scale:
    """Subtracts ``mean``, ``(width,)``, then divides by the scalar ``size``."""

    mean: Array
    size: float

    def apply(self, features: Vectors) -> Vectors:
        """Scaled features, ``(n, width)`` to the same shape, float32 and contiguous."""
        return np.ascontiguousarray((features - self.mean) / self.size, dtype=np.float32)


def fit_scale(features: Vectors) -> Scale:
    """The scale that gives ``(n, width)`` mean 0 per column and mean square 1 over all entries.

    Columns keep their relative sizes (no whitening), but the penalties act alike on long and short vectors. SentEval
    does not scale, so its fixed grid regularizes vectors of length 1 far more than raw BERT vectors of length 15.

    >>> fit_scale(np.array([[1.0, 5.0], [3.0, 5.0]])).apply(np.array([[4.0, 5.0]])).round(1).tolist()
    [[2.799999952316284, 0.0]]
    """
    mean = features.mean(axis=0, dtype=np.float64)
    size = float(np.sqrt(np.mean(np.square(features - mean))))
    return Scale(mean, size or 1.0)


logger = logging.getLogger(__name__)

STRENGTHS = tuple(4.0**power for power in range(-6, 2))  # C, on scaled features: 1/4096 to 4
MAX_STEPS, TOLERANCE = 1000, 1e-5  # converged when the step is at most this share of the largest weight
MAX_COLUMNS = 256  # strengths x classes fitted together; more needs more memory and is not faster


@dataclass(frozen=True, eq=False)
class SoftmaxModels:
    """One model per strength: ``weights`` is ``(classes, strengths, width)``, ``bias`` ``(classes, strengths)``."""

    scale: Scale
    weights: Vectors
    bias: Vectors

    def probabilities(self, features: Vectors) -> Array:
        """Class probabilities for each strength: ``(n, width)`` to ``(strengths, n, classes)``."""
        logits = _logits(self.scale.apply(features), self.weights, self.bias)
        return np.asarray(softmax(logits, axis=0).transpose(1, 2, 0))


def softmax(logits: Array, *, axis: int = -1) -> Array:
    """Logits as probabilities that sum to 1 along an axis.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    powers = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def one_hot(labels: Array) -> Vectors:
    """Class indices ``(n,)`` as rows with a single 1, ``(n, classes)``.

    >>> one_hot(np.array([1, 0])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]


def fit_softmax(features: Vectors, targets: Vectors, *, strengths: Sequence[float] = STRENGTHS) -> SoftmaxModels:
    """Fit one model per strength to ``(n, width)`` features and ``(n, classes)`` target probabilities.

    With two classes, ``C`` has the same meaning as for a single logistic output in scikit-learn.

    >>> models = fit_softmax(np.array([[0.0], [1.0]]), one_hot(np.array([0, 1])), strengths=[4.0])
    >>> models.probabilities(np.array([[0.0], [1.0]])).argmax(-1).tolist()
    [[0, 1]]
    """
    scale = fit_scale(features)
    rows = scale.apply(features)
    values, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    bound = Bound(np.maximum(values, 0) / 2, axes.astype(np.float32))
    penalties = (2.0 if targets.shape[1] == 2 else 1.0) / np.asarray(strengths, dtype=np.float64)
    together = max(1, MAX_COLUMNS // targets.shape[1])
    parts = [
        _descend(
            rows, np.ascontiguousarray(targets.T)[:, None], penalties=penalties[start : start + together], bound=bound
        )
        for start in range(0, len(penalties), together)
    ]
    return SoftmaxModels(scale, *(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Bound:
    """Eigenvalues ``(width,)`` and eigenvectors, in columns, ``(width, width)`` of ``X'X / 2``."""

    values: Array
    axes: Vectors

    def solve(self, gradient: Vectors, penalties: Array) -> Vectors:
        """``(X'X / 2 + penalty)^-1 gradient`` for ``(classes, penalties, width)``."""
        inverse = (1 / (self.values + penalties[:, None])).astype(np.float32)
        flat = gradient.reshape(-1, gradient.shape[-1])
        rotated = (flat @ self.axes).reshape(gradient.shape) * inverse
        return np.asarray((rotated.reshape(flat.shape) @ self.axes.T).reshape(gradient.shape))


def _descend(rows: Vectors, targets: Vectors, *, penalties: Array, bound: Bound) -> tuple[Vectors, Vectors]:
    """Weights ``(classes, penalties, width)`` and bias ``(classes, penalties)``; targets are ``(classes, 1, n)``."""
    weights = np.zeros((len(targets), len(penalties), rows.shape[1]), dtype=np.float32)
    bias = np.zeros(weights.shape[:2], dtype=np.float32)
    ahead, ahead_bias = weights, bias
    momentum = np.ones(len(penalties))
    for _ in range(MAX_STEPS):
        wrong = softmax(_logits(rows, ahead, ahead_bias), axis=0) - targets
        gradient = (wrong.reshape(-1, len(rows)) @ rows).reshape(weights.shape)
        gradient += ahead * penalties.astype(np.float32)[:, None]
        step = bound.solve(gradient, penalties)
        moved, moved_bias = ahead - step, ahead_bias - wrong.sum(axis=2) / (len(rows) / 2)
        if (np.abs(step).max(axis=(0, 2)) <= TOLERANCE * np.abs(moved).max(axis=(0, 2))).all():
            return moved, moved_bias.astype(np.float32)
        momentum[(gradient * (moved - weights)).sum(axis=(0, 2)) > 0] = 1.0  # uphill: reset the momentum
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = ((momentum - 1) / following).astype(np.float32)
        ahead, ahead_bias = moved + push[:, None] * (moved - weights), moved_bias + push * (moved_bias - bias)
        weights, bias, momentum = moved, moved_bias, following
    logger.warning("Softmax regression did not converge in %d steps.", MAX_STEPS)
    return weights, bias


def _logits(rows: Vectors, weights: Vectors, bias: Vectors) -> Array:
    """Logits ``(classes, strengths, n)``; with rows last, sums over classes are ten times faster."""
    flat = weights.reshape(-1, weights.shape[-1]) @ rows.T
    return np.asarray(flat.reshape(*weights.shape[:2], len(rows)) + bias[:, :, None])
