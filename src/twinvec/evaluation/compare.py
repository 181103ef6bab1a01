"""Compare two systems on the same items: differences, paired tests, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluation.resampling import DEFAULT_RESAMPLING, Resampling, interval_of, p_value_of, resample
from twinvec.evaluation.result_file import Evaluation, Result
from twinvec.evaluation.statistics import STATISTICS, Outcome, statistic_of
from twinvec.extras import require
from twinvec.types import Array

__all__ = [
    "TESTS",
    "Compared",
    "Comparison",
    "compare_all",
    "compare_evaluations",
    "compare_outcomes",
    "holm",
    "mcnemar",
    "williams",
    "williams_t",
]

FEWEST_FOR_NORMAL = 25  # differing items from which McNemar's test uses the chi-square distribution


def williams_t(r12: float, r13: float, *, r23: float, n: int) -> float:
    """Williams' t for two correlations that share a list: is ``r12`` other than ``r13``? ``n - 3`` degrees of freedom.

    List 1 is shared (the gold scores); ``r23`` correlates the other two. With ``R`` the determinant of the three,
    ``1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23``, and ``m`` the mean of ``r12`` and ``r13``:
    ``t = (r12 - r13) sqrt((n - 1) (1 + r23) / (2 R (n - 1) / (n - 3) + m^2 (1 - r23)^3))``.
    Williams (1959), in the form that Steiger (1980, equation 7) recommends.

    >>> round(williams_t(-0.11, 0.06, r23=0.41, n=187), 2)
    -2.15
    """
    if n < 4:
        raise InputError(f"Williams' test needs at least 4 items, got {n}.")
    if r23 < -1 + 1e-9:
        raise InputError(
            "Williams' test is undefined: one list of predictions is the exact opposite of the other.",
            hint="Is one a distance? Negate it, so that higher means nearer in both.",
        )
    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    spread = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if spread <= 0 or r23 > 1 - 1e-12:  # the same ranking twice; what is left is rounding
        return 0.0
    return (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / spread)


def williams(r12: float, r13: float, *, r23: float, n: int) -> float:
    """Two-sided p value of ``williams_t``. For Spearman's, give rank correlations: it is then the test on ranks.

    Its theory is that of Pearson's correlation of normal variables; on ranks it holds its level in simulation
    (see the tests).
    """
    special = require("scipy.special", extra="eval", feature="Williams' test")
    return float(2 * special.stdtr(n - 3, -abs(williams_t(r12, r13, r23=r23, n=n))))


def mcnemar(n_left: int, n_right: int) -> float:
    """Two-sided p value that two systems are right equally often. McNemar (1947).

    ``n_left`` items only the left one has right, ``n_right`` only the right one. Below 25 such items the exact
    binomial test; from there chi-square with one degree of freedom and Edwards' continuity correction.

    >>> mcnemar(1, 5)  # 2 (1 + 6) / 2^6
    0.21875
    """
    n = n_left + n_right
    if n == 0:
        return 1.0
    if n < FEWEST_FOR_NORMAL:
        tail = sum(math.comb(n, i) for i in range(min(n_left, n_right) + 1))
        return min(1.0, 2 * tail / 2.0**n)
    distance = max(0, abs(n_left - n_right) - 1)
    return float(math.erfc(distance / math.sqrt(2 * n)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for being several, in the order given. Holm (1979): as safe as Bonferroni, and sharper.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    stretched = (min(1.0, (len(order) - step) * p_values[i]) for step, i in enumerate(order))
    corrected = dict(zip(order, accumulate(stretched, max), strict=True))
    return [corrected[i] for i in range(len(order))]


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


def compare_outcomes(
    left: Outcome,
    right: Outcome,
    *,
    names: tuple[str, str] = ("left", "right"),
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Comparison:
    """Compare two outcomes of the same task, items and protocol.

    Always by paired bootstrap, both on the same resamples (V-measure: by paired jackknife; see ``bootstrap``). For
    correlations of all items together also by Williams' test, on ranks for Spearman's; for items that are right or
    wrong also by McNemar's test. Where subsets are averaged with equal weights, the bootstrap alone fits.

    >>> a, b = np.repeat([1, 0], [90, 10]), np.repeat([1, 0, 1], [70, 25, 5])
    >>> outcomes = (Outcome("SICK-E", "accuracy", "mean", right) for right in (a, b))
    >>> found = compare_outcomes(*outcomes, names=("A", "B"))
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
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> tuple[Comparison, ...]:
    """Compare two systems on several tasks, in the same order; the verdicts follow Holm's correction.

    Among 20 tasks one differs at 5 % by chance alone. The correction keeps the chance of *any* false "more than
    chance" below 5 %. The intervals are those of each task alone.
    """
    if len(left) != len(right):
        raise InputError(f"{names[0]} has {len(left)} outcomes, but {names[1]} has {len(right)}.")
    alone = [compare_outcomes(*pair, names=names, resampling=resampling) for pair in zip(left, right, strict=True)]
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


class Compared(NamedTuple):
    """What could be compared, and in words what could not."""

    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...]


def compare_evaluations(left: Evaluation, right: Evaluation) -> Compared:
    """Compare all results that both have, item by item, with Holm's correction over them."""
    ones, others = _by_key(left), _by_key(right)
    both = [key for key in ones if key in others]
    defined = [key for key in both if ones[key].value is not None and others[key].value is not None]
    if not defined:
        raise InputError(
            f"{left.system} and {right.system} have no result in common.",
            hint="Evaluate both on the same tasks under the same protocol.",
        )
    names = (left.system, right.system) if left.system != right.system else ("the first", "the second")
    comparisons = compare_all(
        [ones[key].outcome for key in defined], [others[key].outcome for key in defined], names=names
    )
    left_out = [f"{key[0]}: undefined for one of the two ({key[1]})." for key in both if key not in defined]
    for name, mine in ((left.system, ones), (right.system, others)):
        left_out += [f"{key[0]}: only {name} has it ({key[1]})." for key in mine if key not in both]
    return Compared(comparisons, tuple(left_out))


def _by_key(evaluation: Evaluation) -> dict[tuple[str, str], Result]:
    return {(result.task, result.protocol): result for result in evaluation.results}
