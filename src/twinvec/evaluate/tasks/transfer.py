"""Transfer tasks as in SentEval: a small classifier on frozen vectors of texts, or of pairs of texts.

A task with splits is trained on its train rows; with dev rows, these choose the regularisation, else an inner
cross-validation of the train rows does. A task without splits gets nested cross-validation: each outer fold is
predicted by a classifier that saw only the other folds, and whose regularisation was chosen within those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.tasks.checks import check_choice, check_columns, numbered
from twinvec.evaluate.tasks.classifiers import CLASSIFIERS, Classifier, Labelled
from twinvec.evaluate.tasks.embed import Embed
from twinvec.evaluate.tasks.features import features_of
from twinvec.evaluate.tasks.folds import label_folds, splits_of
from twinvec.types import Ids

__all__ = ["SPLITS", "TransferTask", "predict_labels", "run_transfer"]

SPLITS = ("train", "dev", "test")
N_FOLDS, N_INNER_FOLDS = 10, 5

SHOWN = {"logreg": "logistic regression", "mlp": "MLP of 50 hidden units"}
INNER = {"logreg": "C by an inner {n}-fold", "mlp": "penalty and stop on a held-out tenth"}
ON_DEV = {"logreg": "C chosen on dev", "mlp": "penalty and stop chosen on dev"}


@dataclass(frozen=True)
class TransferTask:
    """Labelled texts, or pairs if there are ``others``; ``splits`` says train, dev or test of every row.

    ``positive`` names the label whose F1 is reported too, if any.
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
            raise InputError(
                f"{self.name}: all {len(self.labels)} labels are {self.labels[0]!r}.", hint="Give several."
            )
        for row, split in enumerate(self.splits):
            if split not in SPLITS:
                raise UnknownNameError(f"split in {self.name}, row {row}:", split, SPLITS)
        if self.splits and not {"train", "test"} <= set(self.splits):
            raise InputError(f"{self.name}: the splits lack train or test rows.", hint="Give both, or no splits.")
        if self.positive is not None:
            check_choice(f"label of {self.name}:", self.positive, known=set(self.labels))


def run_transfer(
    task: TransferTask, embed: Embed, *, classifier: str = "logreg", n_folds: int = N_FOLDS, seed: int = 0
) -> list[Outcome]:
    """Accuracy over the test rows in the order of the task; and F1 if the task has a positive label."""
    check_choice("classifier", classifier, known=CLASSIFIERS)
    numbers, names = numbered(task.labels)
    data = Labelled(features_of(embed, task.texts, others=task.others), np.array(numbers))
    test, found = predict_labels(task, data, classifier=CLASSIFIERS[classifier], n_folds=n_folds, seed=seed)
    gold, how = data.labels[test], _protocol(task, classifier, n_folds) + seed_shown(seed)
    # Labels, not right and wrong: so a comparison can tell whether two files are of the same rows.
    outcomes = [Outcome(task.name, f"Accuracy x 100, {how}", "accuracy", found.astype(np.int64), gold.astype(np.int64))]
    if task.positive is not None:
        positive = names.index(task.positive)
        outcomes.append(
            Outcome(
                task=task.name,
                protocol=f"F1 x 100 of label {task.positive}, {how}",
                statistic="f1",
                predicted=(found == positive).astype(np.int64),
                gold=(gold == positive).astype(np.int64),
            )
        )
    return outcomes


def predict_labels(
    task: TransferTask, data: Labelled, *, classifier: Classifier, n_folds: int = N_FOLDS, seed: int = 0
) -> tuple[Ids, Ids]:
    """The rows that were predicted, in order, and the class number predicted for each."""
    if task.splits:
        train, dev, test = (np.flatnonzero(np.array(task.splits) == split) for split in SPLITS)
        chosen_on = data.rows(dev) if len(dev) else None
        return test, classifier(data.rows(train), data.features[test], dev=chosen_on, n_folds=n_folds, seed=seed)
    found = np.empty(len(data), dtype=np.int64)
    for train, test in splits_of(label_folds(data.labels, n_folds, seed=seed)):
        found[test] = classifier(
            data.rows(train), data.features[test], dev=None, n_folds=min(N_INNER_FOLDS, n_folds), seed=seed
        )
    return np.arange(len(data)), found


def seed_shown(seed: int) -> str:
    """The seed, where it is not the usual one.

    >>> seed_shown(0), seed_shown(5)
    ('', ', seed 5')
    """
    return f", seed {seed}" if seed else ""


def _protocol(task: TransferTask, classifier: str, n_folds: int) -> str:
    on = "[|u-v|, u*v]" if task.others else "frozen vectors"
    if not task.splits:
        inner = INNER[classifier].format(n=min(N_INNER_FOLDS, n_folds))
        return f"{SHOWN[classifier]} on {on}, {n_folds}-fold with {inner}"
    choice = ON_DEV[classifier] if "dev" in task.splits else INNER[classifier].format(n=n_folds)
    return f"{SHOWN[classifier]} on {on}, train to test with {choice}"
