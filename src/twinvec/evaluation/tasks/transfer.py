"""Transfer tasks as in SentEval: a small classifier on frozen vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import (
    Embed,
    check_choice,
    check_columns,
    features_of,
    label_folds,
    numbered,
    splits_of,
)
from twinvec.evaluation.tasks.logistic import STRENGTHS, fit_softmax, one_hot
from twinvec.evaluation.tasks.mlp import fit_mlp
from twinvec.types import Array, Ids, Vectors

__all__ = ["CLASSIFIERS", "SPLITS", "Labeled", "TransferTask", "describe_seed", "predict_labels", "run_transfer"]

HELD_OUT = 10  # without dev rows, the MLP holds out one in ten training rows


@dataclass(frozen=True, eq=False)
class Labeled:
    """Features ``(n, width)`` and class indices ``(n,)``."""

    features: Vectors
    labels: Ids

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, indices: Array) -> Labeled:
        """Some of the rows."""
        return Labeled(self.features[indices], self.labels[indices])


class Classifier(Protocol):
    """Trains on ``train``, tunes on ``dev`` or within ``train``, and predicts class indices ``(n,)``."""

    def __call__(self, train: Labeled, test: Vectors, *, dev: Labeled | None, n_folds: int, seed: int) -> Ids:
        """Predict the classes of ``test``, ``(n, width)``."""
        ...


def classify_by_logreg(train: Labeled, test: Vectors, *, dev: Labeled | None, n_folds: int, seed: int) -> Ids:
    """Logistic regression; ``C`` is the best of ``STRENGTHS`` on ``dev``, or by cross-validation within ``train``.

    Ties go to the strongest regularization.
    """
    if dev is not None:
        models = fit_softmax(train.features, one_hot(train.labels))
        right = _n_right(models.probabilities(dev.features).argmax(axis=-1), dev.labels)
        return np.asarray(models.probabilities(test)[int(right.argmax())].argmax(axis=-1))
    right = np.zeros(len(STRENGTHS), dtype=np.int64)
    for inner, held_out in splits_of(label_folds(train.labels, n_folds, seed=seed)):
        part, kept = train.rows(inner), train.rows(held_out)
        probabilities = fit_softmax(part.features, one_hot(part.labels)).probabilities(kept.features)
        right += _n_right(probabilities.argmax(axis=-1), kept.labels)
    strength = STRENGTHS[int(right.argmax())]
    model = fit_softmax(train.features, one_hot(train.labels), strengths=[strength])
    return np.asarray(model.probabilities(test)[0].argmax(axis=-1))


def classify_by_mlp(train: Labeled, test: Vectors, *, dev: Labeled | None, n_folds: int, seed: int) -> Ids:
    """A network with one hidden layer; ``dev``, or a tenth of ``train``, chooses the penalty and when to stop."""
    del n_folds  # unused: inner cross-validation would take ten times as long as one held-out part
    if dev is None:
        folds = label_folds(train.labels, min(HELD_OUT, len(train)), seed=seed)
        train, dev = train.rows(folds != 0), train.rows(folds == 0)
    model = fit_mlp((train.features, train.labels), (dev.features, dev.labels), seed=seed)
    return model.predict(test)


def _n_right(predicted: Array, labels: Array) -> Array:
    """The number of right predictions per strength: ``(strengths, n)`` and ``(n,)`` give ``(strengths,)``."""
    return np.asarray((predicted == labels).sum(axis=1))


CLASSIFIERS: dict[str, Classifier] = {"logreg": classify_by_logreg, "mlp": classify_by_mlp}


SPLITS = ("train", "dev", "test")
N_FOLDS, N_INNER_FOLDS = 10, 5

CLASSIFIER_NAMES = {"logreg": "logistic regression", "mlp": "MLP of 50 hidden units"}
INNER = {"logreg": "C by an inner {n}-fold", "mlp": "penalty and stop on a held-out tenth"}
ON_DEV = {"logreg": "C chosen on dev", "mlp": "penalty and stop chosen on dev"}


@dataclass(frozen=True)
class TransferTask:
    """Labeled texts, or pairs if there are ``others``; ``splits`` is train, dev or test for every row.

    ``positive`` is a label whose F1 is also reported.
    """

    name: str
    texts: Sequence[str]
    labels: Sequence[str]
    others: Sequence[str] = ()
    splits: Sequence[str] = ()
    positive: str | None = None

    def __post_init__(self) -> None:
        columns = {"texts": self.texts, "labels": self.labels}
        columns |= {"other texts": self.others} if self.others else {}
        columns |= {"splits": self.splits} if self.splits else {}
        check_columns(self.name, columns, at_least=2)
        if len(set(self.labels)) < 2:
            problem = f"{self.name}: all {len(self.labels)} labels are {self.labels[0]!r}."
            raise InputError(problem, hint="Use at least two labels.")
        for row, split in enumerate(self.splits):
            if split not in SPLITS:
                raise UnknownNameError(f"split in {self.name}, row {row}:", split, SPLITS)
        if self.splits and not {"train", "test"} <= set(self.splits):
            raise InputError(f"{self.name}: the splits lack train or test rows.", hint="Provide both, or no splits.")
        if self.positive is not None:
            check_choice(f"label of {self.name}:", self.positive, known=set(self.labels))


def run_transfer(
    task: TransferTask, embed: Embed, *, classifier: str = "logreg", n_folds: int = N_FOLDS, seed: int = 0
) -> list[Outcome]:
    """Accuracy over the test rows in the order of the task, and F1 if the task has a positive label."""
    check_choice("classifier", classifier, known=CLASSIFIERS)
    numbers, names = numbered(task.labels)
    data = Labeled(features_of(embed, task.texts, others=task.others), np.array(numbers))
    test, predicted = predict_labels(task, data, classifier=CLASSIFIERS[classifier], n_folds=n_folds, seed=seed)
    gold, how = data.labels[test].astype(np.int64), _protocol(task, classifier, n_folds) + describe_seed(seed)
    # Store labels instead of right and wrong, so a comparison can check that both files are about the same rows.
    outcomes = [Outcome(task.name, f"Accuracy x 100, {how}", "accuracy", predicted.astype(np.int64), gold)]
    if task.positive is not None:
        protocol = f"F1 x 100 of label {task.positive}, {how}"
        marks = [(labels == names.index(task.positive)).astype(np.int64) for labels in (predicted, gold)]
        outcomes.append(Outcome(task.name, protocol, "f1", *marks))
    return outcomes


def predict_labels(
    task: TransferTask, data: Labeled, *, classifier: Classifier, n_folds: int = N_FOLDS, seed: int = 0
) -> tuple[Ids, Ids]:
    """The predicted rows, in order, and the class index predicted for each."""
    if task.splits:
        train, dev, test = (np.flatnonzero(np.array(task.splits) == split) for split in SPLITS)
        dev_rows = data.rows(dev) if len(dev) else None
        return test, classifier(data.rows(train), data.features[test], dev=dev_rows, n_folds=n_folds, seed=seed)
    predicted = np.empty(len(data), dtype=np.int64)
    n_inner = min(N_INNER_FOLDS, n_folds)
    for train, test in splits_of(label_folds(data.labels, n_folds, seed=seed)):
        predicted[test] = classifier(data.rows(train), data.features[test], dev=None, n_folds=n_inner, seed=seed)
    return np.arange(len(data)), predicted


def describe_seed(seed: int) -> str:
    """The seed as part of a protocol; empty for the default.

    >>> describe_seed(0), describe_seed(5)
    ('', ', seed 5')
    """
    return f", seed {seed}" if seed else ""


def _protocol(task: TransferTask, classifier: str, n_folds: int) -> str:
    on = "[|u-v|, u*v]" if task.others else "frozen vectors"
    if not task.splits:
        inner = INNER[classifier].format(n=min(N_INNER_FOLDS, n_folds))
        return f"{CLASSIFIER_NAMES[classifier]} on {on}, {n_folds}-fold with {inner}"
    choice = ON_DEV[classifier] if "dev" in task.splits else INNER[classifier].format(n=n_folds)
    return f"{CLASSIFIER_NAMES[classifier]} on {on}, train to test with {choice}"
