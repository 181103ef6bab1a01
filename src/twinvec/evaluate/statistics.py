"""Which number is made of an outcome. All are shown times 100, as papers do: a Spearman of 77.03, an nDCG of 54.2."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.recount import (
    Recount,
    recount_accuracy,
    recount_average_precision,
    recount_f1,
    recount_mean,
    recount_pearson,
    recount_spearman,
    recount_v_measure,
)
from twinvec.metrics import accuracy, average_precision, f1, pearson, spearman, v_measure
from twinvec.types import Array

__all__ = ["STATISTICS", "Kind", "Method", "Statistic", "Stratum", "group_values", "statistic_of", "strata", "value_of"]

logger = logging.getLogger(__name__)

Kind = Literal["correlation", "mean", "whole"]
Method = Literal["bca", "jackknife"]


def _mean(values: Array, _: None = None) -> float:
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) == 0:
        raise InputError("The mean of no items is undefined.")
    if not np.isfinite(numbers).all():
        raise InputError(f"{int((~np.isfinite(numbers)).sum())} of {len(numbers)} values are not finite numbers.")
    return float(numbers.mean())


@dataclass(frozen=True, slots=True)
class Statistic:
    """How a number is made of ``predicted`` and ``gold``, both ``(n,)``.

    ``of`` gives it as a fraction, ``recount`` gives that of many resamples; the number shown is ``scale`` times it.
    ``kind`` decides the tests: a "mean" is that of one value per item (right or wrong, an nDCG); a "whole" is
    made of all items together. ``method`` is how its interval is taken; see ``bootstrap``.
    """

    kind: Kind
    of: Callable[[Array, Any], float]
    recount: Callable[[Array, Any], Recount]
    method: Method = "bca"
    scale: float = 100.0


STATISTICS: dict[str, Statistic] = {
    "spearman": Statistic("correlation", spearman, recount_spearman),
    "pearson": Statistic("correlation", pearson, recount_pearson),
    "accuracy": Statistic("mean", accuracy, recount_accuracy),
    "mean": Statistic("mean", _mean, recount_mean),
    "f1": Statistic("whole", f1, recount_f1),
    "average_precision": Statistic("whole", average_precision, recount_average_precision),
    "v_measure": Statistic("whole", v_measure, recount_v_measure, method="jackknife"),
}


class Stratum(NamedTuple):
    """A part of the items that has a number of its own, and its share in the outcome's number."""

    name: str
    share: float
    items: Array


def statistic_of(outcome: Outcome) -> Statistic:
    """The statistic that the outcome names, checked against what it holds."""
    if outcome.statistic not in STATISTICS:
        raise UnknownNameError("statistic", outcome.statistic, STATISTICS)
    if outcome.statistic == "mean" and outcome.gold is not None:
        raise InputError(
            f"{outcome.task}: the mean is that of the predictions alone, but gold values are given.",
            hint="Leave gold out, or use the statistic 'accuracy' to compare labels.",
        )
    if outcome.statistic != "mean" and outcome.gold is None:
        raise InputError(f"{outcome.task}: the statistic {outcome.statistic!r} needs gold values, but there are none.")
    return STATISTICS[outcome.statistic]


def strata(outcome: Outcome) -> list[Stratum]:
    """The parts whose numbers make the outcome's: all items at once, or the subsets that are averaged."""
    if outcome.aggregation == "all":
        return [Stratum("", 1.0, np.arange(len(outcome)))]
    groups = _groups(outcome)
    sizes = [len(items) if outcome.aggregation == "weighted mean" else 1 for items in groups.values()]
    return [Stratum(name, size / sum(sizes), items) for (name, items), size in zip(groups.items(), sizes, strict=True)]


def value_of(outcome: Outcome) -> float:
    """The number of an outcome, times 100.

    With ``aggregation`` "mean" every subset counts the same, with "weighted mean" by its size.

    >>> value_of(Outcome("TREC", "accuracy", "accuracy", np.array([1, 2, 3]), np.array([1, 2, 0]))).__round__(2)
    66.67
    """
    return sum(part.share * _value(outcome, part.items, part.name) for part in strata(outcome))


def group_values(outcome: Outcome) -> dict[str, float]:
    """The number of each subset, times 100; empty where the task has none.

    Where all items are taken together, the outcome's number does not need these: a subset that has no number of
    its own (such as one whose gold scores are all equal) is then left out, with a warning in the log.
    """
    values: dict[str, float] = {}
    statistic_of(outcome)
    for name, items in _groups(outcome).items() if outcome.groups is not None else ():
        try:
            values[name] = _value(outcome, items, name)
        except InputError as error:
            if outcome.aggregation != "all":
                raise
            logger.warning("%s The subset is left out of the subsets' numbers.", error)
    return values


def _value(outcome: Outcome, items: Array, name: str) -> float:
    statistic = statistic_of(outcome)
    gold = None if outcome.gold is None else outcome.gold[items]
    try:
        return statistic.scale * statistic.of(outcome.predicted[items], gold)
    except InputError as error:
        where = f"{outcome.task}, subset {name!r}" if name else outcome.task
        raise InputError(f"{where}: {error.problem}", hint=error.hint) from error


def _groups(outcome: Outcome) -> dict[str, Array]:
    """The items of each subset, by name."""
    places, names = np.asarray(outcome.groups), outcome.group_names
    if len(places) and not (places.min() >= 0 and places.max() < len(names)):
        raise InputError(
            f"{outcome.task}: subsets are numbered {places.min()} to {places.max()}, but {len(names)} are named.",
            hint="Give a name in group_names for every number from 0.",
        )
    groups = {name: np.flatnonzero(places == place) for place, name in enumerate(names)}
    empty = [name for name, items in groups.items() if len(items) == 0]
    if empty or len(groups) < len(names):
        problem = f"has no items in the subset {empty[0]!r}" if empty else "names a subset twice"
        raise InputError(f"{outcome.task} {problem}.", hint="Name each subset that has items once, and no other.")
    return groups
