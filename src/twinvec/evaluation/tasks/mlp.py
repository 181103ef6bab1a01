"""A classifier with one hidden layer in numpy, trained with Adam and early stopping.

It follows SentEval (and so the SBERT-WK paper): 50 hidden sigmoid units, batches of 64, learning rate 0.001, a check on
held-out rows every 4 epochs, and a stop after 5 checks without improvement. All L2 strengths are trained together on
the same batches, and the best one on the held-out rows is kept. SentEval chooses the strength by inner 10-fold instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from twinvec.evaluation.tasks.logistic import Scale, fit_scale, one_hot, softmax
from twinvec.types import Array, Ids, Vectors

__all__ = ["fit_mlp"]

MLP_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class MlpSettings:
    """Size and training settings of the network."""

    hidden: int = 50
    batch: int = 64
    rate: float = 1e-3
    passes_per_check: int = 4
    patience: int = 5
    max_checks: int = 50
    penalties: Sequence[float] = MLP_PENALTIES


@dataclass(eq=False)
class Networks:
    """A network per penalty: ``inner`` ``(width, penalties * hidden)``, ``outer`` ``(penalties, hidden, classes)``."""

    inner: Array
    inner_bias: Array
    outer: Array
    outer_bias: Array

    def arrays(self) -> list[Array]:
        """The four arrays, which are updated in place."""
        return [self.inner, self.inner_bias, self.outer, self.outer_bias]

    def of(self, penalty: int) -> Networks:
        """The network of one penalty, as views of the arrays."""
        one, hidden = slice(penalty, penalty + 1), self.outer.shape[1]
        columns = slice(penalty * hidden, (penalty + 1) * hidden)
        return Networks(self.inner[:, columns], self.inner_bias[columns], self.outer[one], self.outer_bias[one])

    def hidden(self, rows: Vectors) -> Array:
        """The states of the hidden layer, ``(penalties, n, hidden)``."""
        states = 1 / (1 + np.exp(-(rows @ self.inner + self.inner_bias)))
        return np.asarray(states.reshape(len(rows), len(self.outer), -1).transpose(1, 0, 2))

    def predict(self, rows: Vectors) -> Ids:
        """The most likely class for each penalty, ``(penalties, n)``."""
        return np.asarray((np.matmul(self.hidden(rows), self.outer) + self.outer_bias[:, None]).argmax(axis=-1))


@dataclass(eq=False)
class Adam:
    """Adam (Kingma & Ba 2015) over a list of arrays."""

    arrays: list[Array]
    rate: float
    step: int = 0
    first: list[Array] = field(default_factory=list)
    second: list[Array] = field(default_factory=list)
    scratch: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first, self.second, self.scratch = ([np.zeros_like(array) for array in self.arrays] for _ in range(3))

    def update(self, gradients: list[Array]) -> None:
        """Move every array a step against its gradient, in place."""
        self.step += 1
        rate = np.float32(self.rate * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step))
        moments = zip(self.first, self.second, self.scratch, strict=True)
        for array, gradient, (mean, square, scratch) in zip(self.arrays, gradients, moments, strict=True):
            mean *= np.float32(0.9)
            mean += np.multiply(gradient, np.float32(0.1), out=scratch)
            square *= np.float32(0.999)
            square += np.multiply(np.square(gradient, out=scratch), np.float32(0.001), out=scratch)
            np.sqrt(square, out=scratch)
            scratch += np.float32(1e-8)
            np.divide(mean, scratch, out=scratch)
            scratch *= rate
            array -= scratch


@dataclass(frozen=True, eq=False)
class Mlp:
    """The chosen network, with the scale of its features."""

    scale: Scale
    networks: Networks

    def predict(self, features: Vectors) -> Ids:
        """Class indices, ``(n, width)`` to ``(n,)``."""
        return np.asarray(self.networks.predict(self.scale.apply(features))[0])


def fit_mlp(
    train: tuple[Vectors, Ids], dev: tuple[Vectors, Ids], *, seed: int, settings: MlpSettings | None = None
) -> Mlp:
    """Train on ``(features, labels)``; the held-out ``dev`` rows choose the penalty and when to stop."""
    settings = settings or MlpSettings()
    generator = np.random.default_rng(seed)
    scale = fit_scale(train[0])
    rows, targets, dev_rows = scale.apply(train[0]), one_hot(train[1]), scale.apply(dev[0])
    networks = _start((rows.shape[1], targets.shape[1]), settings, generator)
    adam = Adam(networks.arrays(), settings.rate)
    best = np.full(len(settings.penalties), -1.0)
    kept, since = Networks(*(array.copy() for array in networks.arrays())), np.zeros(len(best), dtype=int)
    for _ in range(settings.max_checks):
        for _ in range(settings.passes_per_check):
            order = generator.permutation(len(rows))
            for start in range(0, len(rows), settings.batch):
                part = order[start : start + settings.batch]
                adam.update(_gradients(networks, rows[part], targets=targets[part], settings=settings))
        right = (networks.predict(dev_rows) == dev[1]).mean(axis=1)
        improved = (right > best) & (since < settings.patience)
        since = np.where(improved, 0, since + 1)
        best[improved] = right[improved]
        for penalty in map(int, np.flatnonzero(improved)):
            for target, source in zip(kept.of(penalty).arrays(), networks.of(penalty).arrays(), strict=True):
                target[:] = source
        if (since >= settings.patience).all():
            break
    return Mlp(scale, kept.of(int(best.argmax())))


def _start(shape: tuple[int, int], settings: MlpSettings, generator: np.random.Generator) -> Networks:
    """Initialize uniformly within ``1 / sqrt(inputs)``, the same for every penalty."""
    width, n_classes = shape
    n, hidden = len(settings.penalties), settings.hidden

    def draw(inputs: int, *size: int) -> Array:
        return np.asarray(generator.uniform(-1, 1, size=size) / np.sqrt(inputs), dtype=np.float32)

    return Networks(
        inner=np.tile(draw(width, width, hidden), (1, n)),
        inner_bias=np.tile(draw(width, hidden), n),
        outer=np.tile(draw(hidden, 1, hidden, n_classes), (n, 1, 1)),
        outer_bias=np.tile(draw(hidden, 1, n_classes), (n, 1)),
    )


def _gradients(networks: Networks, rows: Vectors, *, targets: Vectors, settings: MlpSettings) -> list[Array]:
    """Gradients of the mean cross-entropy plus the penalty, in the order of ``Networks.arrays``."""
    penalties = np.asarray(settings.penalties, dtype=np.float32)
    states = networks.hidden(rows)
    wrong = softmax(np.matmul(states, networks.outer) + networks.outer_bias[:, None]) - targets
    wrong /= np.float32(len(rows))
    back = np.matmul(wrong, networks.outer.transpose(0, 2, 1)) * states * (1 - states)
    flat = back.transpose(1, 0, 2).reshape(len(rows), -1)
    wide = np.repeat(penalties, settings.hidden)
    return [
        rows.T @ flat + wide * networks.inner,
        flat.sum(axis=0) + wide * networks.inner_bias,
        np.matmul(states.transpose(0, 2, 1), wrong) + penalties[:, None, None] * networks.outer,
        wrong.sum(axis=1) + penalties[:, None] * networks.outer_bias,
    ]
