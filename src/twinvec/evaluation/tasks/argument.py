"""Argument similarity on pairs with graded labels, with the protocols of SBERT's Table 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import (
    Embed,
    check_columns,
    check_finite,
    embed_once,
    numbered,
    pair_features,
    plain_folds,
    splits_of,
)
from twinvec.evaluation.tasks.logistic import fit_scale
from twinvec.evaluation.tasks.transfer import describe_seed
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import similarity_pairwise

__all__ = ["GRADES", "ArgumentTask", "leave_out_errors", "run_argument"]

PENALTIES = tuple(4.0**power for power in range(10))  # on scaled features


def predict_by_ridge(
    features: Vectors, gold: Array, *, groups: Array, test: Vectors, penalties: Sequence[float] = PENALTIES
) -> Array:
    """Fit ridge regression to ``(n, width)`` and ``(n,)``, then predict ``test``, ``(m, width)`` to ``(m,)``.

    The penalty has the smallest squared error in cross-validation, with one of the ``groups`` ``(n,)`` left out at a
    time.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> predict_by_ridge(x, 2 * x[:, 0], groups=np.arange(4), test=np.array([[1.5]])).round(3).tolist()
    [3.0]
    """
    scale = fit_scale(features)
    rows = scale.apply(features).astype(np.float64)
    values, axes = np.linalg.eigh(rows.T @ rows)
    rotated, values = rows @ axes, np.maximum(values, 0)
    errors = [leave_out_errors(rotated / np.sqrt(values + each), gold, groups=groups) for each in penalties]
    penalty = penalties[int(np.argmin([np.square(error).sum() for error in errors]))]
    weights = axes @ (rotated.T @ (gold - gold.mean()) / (values + penalty))
    return np.asarray(scale.apply(test) @ weights + gold.mean())


def leave_out_errors(factor: Array, gold: Array, *, groups: Array) -> Array:
    """Gold minus the prediction of a fit without the row's group, ``(n,)``; ``factor`` is ``(n, width)``.

    The fit is the linear smoother ``H = factor factor' + 1/n``; the intercept has no penalty. Leaving out a block turns
    its residuals ``r`` into ``(I - H_block)^-1 r``, so one decomposition of all rows serves all groups and penalties.
    """
    residuals = gold - gold.mean() - factor @ (factor.T @ gold)
    errors = np.empty(len(gold))
    for group in np.unique(groups):
        block = np.flatnonzero(groups == group)
        smoother = factor[block] @ factor[block].T + 1 / len(gold)
        errors[block] = np.linalg.solve(np.eye(len(block)) - smoother, residuals[block])
    return errors


GRADES = {"DTORCD": 0.0, "NS": 0.0, "SS": 1.0, "HS": 2.0}
N_FOLDS = 10


@dataclass(frozen=True)
class ArgumentTask:
    """Pairs of arguments with the topic and the human similarity grade of each pair."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    gold: Sequence[float]
    topics: Sequence[str]

    def __post_init__(self) -> None:
        columns = {"left texts": self.left, "right texts": self.right, "grades": self.gold, "topics": self.topics}
        check_columns(self.name, columns, at_least=2 * N_FOLDS)
        check_finite(self.name, self.gold, what="grade")
        for topic in sorted(set(self.topics)):
            grades = {grade for grade, other in zip(self.gold, self.topics, strict=True) if other == topic}
            if len(grades) < 2:
                raise InputError(
                    f"{self.name}: all pairs of the topic {topic!r} have the same grade, so correlation is undefined.",
                    hint="Remove the topic.",
                )
        if len(set(self.topics)) < 3:
            raise InputError(f"{self.name}: {len(set(self.topics))} topics, but cross-topic requires at least 3.")


class Groups(NamedTuple):
    """The group of every pair, as an index into ``names``."""

    indices: Ids
    names: tuple[str, ...]


def run_argument(task: ArgumentTask, embed: Embed, *, seed: int = 0) -> list[Outcome]:
    """Pearson and Spearman of the cosine (all pairs, per topic) and of ridge regression (10-fold, cross-topic)."""
    left, right = embed_once(embed, task.left, task.right)
    features, gold = pair_features(left, right), np.asarray(task.gold, dtype=np.float64)
    indices, topics = numbered(task.topics)
    by_topic = Groups(np.array(indices), topics)
    by_fold = Groups(plain_folds(len(gold), N_FOLDS, seed=seed), tuple(f"fold {n + 1}" for n in range(N_FOLDS)))
    cosine = similarity_pairwise(left, right)
    outcomes = _outcomes(task, "cosine, untrained, all pairs together", predicted=cosine, groups=None)
    outcomes += _outcomes(task, "cosine, untrained, mean of the topics", predicted=cosine, groups=by_topic)
    for protocol, groups in (
        (f"10-fold, mean of the folds{describe_seed(seed)}", by_fold),
        ("cross-topic, mean of the topics", by_topic),
    ):
        predicted = _cross_validate(features, gold, groups.indices)
        outcomes += _outcomes(task, f"ridge on [|u-v|, u*v], {protocol}", predicted=predicted, groups=groups)
    return outcomes


def _cross_validate(features: Vectors, gold: Array, groups: Ids) -> Array:
    """The score of every pair, predicted by a model trained on the other groups."""
    predicted = np.empty(len(gold))
    for train, test in splits_of(groups):
        predicted[test] = predict_by_ridge(features[train], gold[train], groups=groups[train], test=features[test])
    return predicted


def _outcomes(task: ArgumentTask, protocol: str, *, predicted: Array, groups: Groups | None) -> list[Outcome]:
    return [
        Outcome(
            task=task.name,
            protocol=f"{statistic.capitalize()} x 100, {protocol}",
            statistic=statistic,
            predicted=predicted,
            gold=np.asarray(task.gold, dtype=np.float64),
            groups=groups.indices if groups else None,
            group_names=groups.names if groups else (),
            aggregation="mean" if groups else "all",
        )
        for statistic in ("pearson", "spearman")
    ]
