"""The two classifiers that are trained on frozen vectors: logistic regression (SBERT) and an MLP (SBERT-WK).

Both choose their regularisation on rows they are given for it, or on a part of the training rows; neither is ever
handed the labels of the rows it must predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from twinvec.evaluate.tasks.folds import label_folds, splits_of
from twinvec.evaluate.tasks.logistic import STRENGTHS, fit_softmax, one_hot
from twinvec.evaluate.tasks.mlp import fit_mlp
from twinvec.types import Array, Ids, Vectors

__all__ = ["CLASSIFIERS", "Classifier", "Labelled", "classify_by_logreg", "classify_by_mlp"]

HELD_OUT = 10  # without dev rows, the MLP keeps one in ten of its training rows for its own choices


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with their class numbers: ``(n, width)`` and ``(n,)``."""

    features: Vectors
    labels: Ids

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, places: Array) -> Labelled:
        """Some of the rows."""
        return Labelled(self.features[places], self.labels[places])


class Classifier(Protocol):
    """Learns from ``train``, makes its choices on ``dev`` or within ``train``, and predicts class numbers ``(n,)``."""

    def __call__(self, train: Labelled, test: Vectors, *, dev: Labelled | None, n_folds: int, seed: int) -> Ids:
        """Predict the classes of ``test``, ``(n, width)``."""
        ...


def classify_by_logreg(train: Labelled, test: Vectors, *, dev: Labelled | None, n_folds: int, seed: int) -> Ids:
    """Logistic regression; ``C`` is the best of ``STRENGTHS`` on ``dev``, or by cross-validation within ``train``.

    Of equally good ones the strongest regularisation is taken.
    """
    if dev is not None:
        models = fit_softmax(train.features, one_hot(train.labels))
        right = _right(models.probabilities(dev.features).argmax(axis=-1), dev.labels)
        return np.asarray(models.probabilities(test)[int(right.argmax())].argmax(axis=-1))
    right = np.zeros(len(STRENGTHS), dtype=np.int64)
    for inner, held_out in splits_of(label_folds(train.labels, n_folds, seed=seed)):
        part, kept = train.rows(inner), train.rows(held_out)
        found = fit_softmax(part.features, one_hot(part.labels)).probabilities(kept.features)
        right += _right(found.argmax(axis=-1), kept.labels)
    chosen = STRENGTHS[int(right.argmax())]
    model = fit_softmax(train.features, one_hot(train.labels), strengths=[chosen])
    return np.asarray(model.probabilities(test)[0].argmax(axis=-1))


def classify_by_mlp(train: Labelled, test: Vectors, *, dev: Labelled | None, n_folds: int, seed: int) -> Ids:
    """One hidden layer of 50; ``dev``, or else a tenth of ``train``, chooses the penalty and when to stop."""
    del n_folds  # a single held-out part: an inner cross-validation would take ten times as long
    if dev is None:
        folds = label_folds(train.labels, min(HELD_OUT, len(train)), seed=seed)
        train, dev = train.rows(folds != 0), train.rows(folds == 0)
    model = fit_mlp((train.features, train.labels), (dev.features, dev.labels), seed=seed)
    return model.predict(test)


def _right(found: Array, labels: Array) -> Array:
    """How many answers are right under each strength: ``(strengths, n)`` and ``(n,)`` give ``(strengths,)``."""
    return np.asarray((found == labels).sum(axis=1))


CLASSIFIERS: dict[str, Classifier] = {"logreg": classify_by_logreg, "mlp": classify_by_mlp}
