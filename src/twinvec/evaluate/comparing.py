"""Two systems on the same items: how far apart they are, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluate.bootstrap import interval_of, p_value_of
from twinvec.evaluate.drawing import USUAL, Resampling, resample
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.significance import holm, mcnemar, williams
from twinvec.evaluate.statistics import STATISTICS, statistic_of
from twinvec.types import Array

__all__ = ["TESTS", "Comparison", "compare", "compare_all"]

TESTS = {
    "williams": "Williams' test",
    "mcnemar": "McNemar's test",
    "bootstrap": "paired bootstrap",
    "jackknife": "paired jackknife",
}
PAIRED = {"bca": "bootstrap", "jackknife": "jackknife"}


@dataclass(frozen=True)
class Comparison:
    """Left against right on one task. ``difference`` is left less right, ``low`` to ``high`` its interval.

    ``p_values`` go by the names of ``TESTS``; the first of those that is there decides (``test``). ``n_compared`` is
    how many tasks were compared at once, and ``p`` the deciding p value after Holm's correction for that.
    """

    task: str
    protocol: str
    names: tuple[str, str]
    left: float
    right: float
    difference: float
    low: float
    high: float
    level: float
    p_values: Mapping[str, float]
    p: float
    n_compared: int = 1

    @property
    def test(self) -> str:
        """The test that decides: the sharpest one that fits the statistic."""
        return next(name for name in TESTS if name in self.p_values)

    @property
    def is_more_than_chance(self) -> bool:
        """Whether the deciding p value, corrected, is below 1 less the level."""
        return self.p < 1 - self.level

    @property
    def verdict(self) -> str:
        """All of it in one sentence of plain English."""
        return f"{_size(self)}." if self.difference == 0 else f"{_size(self)}; {_chance(self)}."


def compare(
    left: Outcome, right: Outcome, *, names: tuple[str, str] = ("left", "right"), resampling: Resampling = USUAL
) -> Comparison:
    """Compare two outcomes of the same task, items and protocol.

    Always by paired bootstrap, both on the same resamples (V-measure: by paired jackknife; see ``bootstrap``). For
    correlations of all items together also by Williams' test, on ranks for Spearman's; for items that are right or
    wrong also by McNemar's test. Where subsets are averaged with equal weights, the bootstrap alone fits.

    >>> a, b = np.repeat([1, 0], [90, 10]), np.repeat([1, 0, 1], [70, 25, 5])
    >>> found = compare(*(Outcome("SICK-E", "accuracy", "mean", right) for right in (a, b)), names=("A", "B"))
    >>> found.verdict.split("; ")[1]
    "more than chance (McNemar's test, p = 0.005)."
    """
    _check_comparable(left, right)
    first, second = resample([left, right], resampling)
    both = first - second
    method = statistic_of(left).method
    low, high = interval_of(both, level=resampling.level, method=method)
    p_values = {**_other_tests(left, right), PAIRED[method]: p_value_of(both, method=method)}
    return Comparison(
        left.task,
        left.protocol,
        names,
        left=first.value,
        right=second.value,
        difference=both.value,
        low=low,
        high=high,
        level=resampling.level,
        p_values=p_values,
        p=next(p_values[name] for name in TESTS if name in p_values),
    )


def compare_all(
    left: Sequence[Outcome],
    right: Sequence[Outcome],
    *,
    names: tuple[str, str] = ("left", "right"),
    resampling: Resampling = USUAL,
) -> tuple[Comparison, ...]:
    """Compare two systems on several tasks, in the same order; the verdicts follow Holm's correction.

    Among 20 tasks one differs at 5 % by chance alone. The correction keeps the chance of *any* false "more than
    chance" below 5 %. The intervals are those of each task alone.
    """
    if len(left) != len(right):
        raise InputError(f"{names[0]} has {len(left)} outcomes, but {names[1]} has {len(right)}.")
    alone = [compare(*pair, names=names, resampling=resampling) for pair in zip(left, right, strict=True)]
    corrected = holm([each.p for each in alone])
    return tuple(replace(each, p=p, n_compared=len(alone)) for each, p in zip(alone, corrected, strict=True))


def _other_tests(left: Outcome, right: Outcome) -> dict[str, float]:
    """The tests made for this statistic, where there is one."""
    kind = statistic_of(left).kind
    if kind == "correlation" and left.aggregation == "all":
        correlation = STATISTICS[left.statistic].of
        r12, r13 = correlation(left.predicted, left.gold), correlation(right.predicted, right.gold)
        return {"williams": williams(r12, r13, r23=correlation(left.predicted, right.predicted), n=len(left))}
    first, second = _right_or_wrong(left), _right_or_wrong(right)
    if kind == "mean" and left.aggregation != "mean" and first is not None and second is not None:
        return {"mcnemar": mcnemar(int((first & ~second).sum()), int((second & ~first).sum()))}
    return {}


def _right_or_wrong(outcome: Outcome) -> Array | None:
    """True where an item is right, ``(n,)``; None if items have other values than 0 and 1."""
    if outcome.gold is not None:
        return np.asarray(outcome.predicted == outcome.gold)
    return outcome.predicted == 1 if np.isin(outcome.predicted, (0, 1)).all() else None


def _check_comparable(left: Outcome, right: Outcome) -> None:
    for name in ("task", "protocol", "statistic", "aggregation", "group_names"):
        one, other = getattr(left, name), getattr(right, name)
        if one != other:
            raise InputError(
                f"These cannot be compared: their {name.replace('_', ' ')} differs, {one!r} and {other!r}.",
                hint="Run both with the same task and protocol.",
            )
    if len(left) != len(right):
        raise InputError(
            f"{left.task}: one outcome has {len(left)} items, the other {len(right)}.", hint="Run both on all items."
        )
    for name in ("gold", "groups"):
        if not _is_same(getattr(left, name), getattr(right, name)):
            raise InputError(
                f"{left.task}: the two outcomes differ in {name}, so their items are not the same.",
                hint="Run both on the same version of the data, in the same order.",
            )


def _is_same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def _size(of: Comparison) -> str:
    """Who is higher, by how much, and how sure that is; seen from the higher one."""
    name, low, high = of.names[0], of.low, of.high
    if of.difference < 0:
        name, low, high = of.names[1], -high, -low
    sure = f"{100 * of.level:g} % interval {low:.2f} to {high:.2f}"
    if of.difference == 0:
        return f"{of.names[0]} and {of.names[1]} are equal ({sure})"
    return f"{name} is higher by {abs(of.difference):.2f} ({sure})"


def _chance(of: Comparison) -> str:
    alone = of.p_values[of.test]
    shown = f"{TESTS[of.test]}, {_p(alone)}"
    if of.n_compared > 1:
        shown += f", after Holm's correction for {of.n_compared} tasks {_p(of.p)}"
        if alone < 1 - of.level <= of.p:
            return f"could be chance, as {of.n_compared} tasks were compared ({shown})"
    elif of.is_more_than_chance == (of.low <= 0 <= of.high):
        return f"on the edge of chance ({shown}, but the interval {'holds' if of.low <= 0 else 'does not hold'} 0)"
    return f"{'more than chance' if of.is_more_than_chance else 'could well be chance'} ({shown})"


def _p(value: float) -> str:
    """For people.

    >>> _p(0.0000012), _p(0.0314), _p(0.3)
    ('p < 0.001', 'p = 0.031', 'p = 0.30')
    """
    if value < 0.001:
        return "p < 0.001"
    return f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"
