"""Compare two systems on the same items: differences, paired tests, and Holm's correction."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from twinvec.choices import DEFAULT_MODEL
from twinvec.errors import InputError
from twinvec.evaluation.resampling import DEFAULT_RESAMPLING, Resampling, interval_of, p_value_of, resample
from twinvec.evaluation.result_file import Evaluation
from twinvec.evaluation.statistics import STATISTICS, Outcome, statistic_of
from twinvec.extras import require
from twinvec.types import Array

__all__ = ["Compared", "Comparison", "compare_evaluations", "compare_outcomes"]

MIN_FOR_CHI_SQUARE = 25  # with fewer differing items, McNemar's test is the exact binomial test


def williams_t(r12: float, r13: float, *, r23: float, n: int) -> float:
    """Williams' t for the difference of two correlations that share a variable; ``n - 3`` degrees of freedom.

    Variable 1 is shared (the gold scores); ``r23`` correlates the other two. With ``R`` the determinant of the three,
    ``1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23``, and ``m`` the mean of ``r12`` and ``r13``:
    ``t = (r12 - r13) sqrt((n - 1) (1 + r23) / (2 R (n - 1) / (n - 3) + m^2 (1 - r23)^3))``.
    Williams (1959), in the form that Steiger (1980, equation 7) recommends.

    >>> round(williams_t(-0.11, 0.06, r23=0.41, n=187), 2)
    -2.15
    """
    if n < 4:
        raise InputError(f"Williams' test requires at least 4 items, got {n}.")
    if r23 < -1 + 1e-9:
        raise InputError(
            "Williams' test is undefined: one list of predictions is the exact opposite of the other.",
            hint="Is one a distance? Negate it, so that higher means nearer in both.",
        )
    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    spread = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if spread <= 0 or r23 > 1 - 1e-12:  # the same ranking twice; any difference is rounding error
        return 0.0
    return (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / spread)


def williams(r12: float, r13: float, *, r23: float, n: int) -> float:
    """Two-sided p value of ``williams_t``. For Spearman, pass rank correlations: the test then works on ranks.

    The theory assumes Pearson correlations of normal variables; on ranks, simulations confirm the level (see the
    tests).
    """
    special = require("scipy.special", extra="eval", feature="Williams' test")
    return float(2 * special.stdtr(n - 3, -abs(williams_t(r12, r13, r23=r23, n=n))))


def mcnemar(n_left: int, n_right: int) -> float:
    """Two-sided p value of the hypothesis that two systems are equally often right. McNemar (1947).

    Only the left system is right on ``n_left`` items, only the right one on ``n_right``. With fewer than 25 such items
    it is the exact binomial test, otherwise chi-square with one degree of freedom and Edwards' continuity correction.

    >>> mcnemar(1, 5)  # 2 (1 + 6) / 2^6
    0.21875
    """
    n = n_left + n_right
    if n == 0:
        return 1.0
    if n < MIN_FOR_CHI_SQUARE:
        tail = sum(math.comb(n, i) for i in range(min(n_left, n_right) + 1))
        return min(1.0, 2 * tail / 2.0**n)
    distance = max(0, abs(n_left - n_right) - 1)
    return float(math.erfc(distance / math.sqrt(2 * n)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for multiple comparisons, in the same order. Holm (1979): valid like Bonferroni, but stronger.

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
    """Left against right on one task. ``difference`` is left minus right, with the interval ``low`` to ``high``.

    ``p_values`` has a p value per test in ``TESTS``; the first one present decides (``test``). ``p`` is its p value
    after Holm's correction for the ``n_compared`` tasks that were compared together.
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
        """The deciding test: the most powerful one that suits the statistic."""
        return next(name for name in TESTS if name in self.p_values)

    @property
    def is_more_than_chance(self) -> bool:
        """Whether the corrected p value is below 1 minus the level."""
        return self.p < 1 - self.level

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        return f"{_describe_size(self)}{f'; {_describe_chance(self)}' if self.difference else ''}."


def compare_outcomes(
    left: Outcome,
    right: Outcome,
    *,
    names: tuple[str, str] = ("left", "right"),
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Comparison:
    """Compare two outcomes of the same task, items and protocol.

    The paired bootstrap always runs, on the same resamples for both (for V-measure, the paired jackknife). Correlations
    over all items together also get Williams' test, on ranks for Spearman; items that are right or wrong also get
    McNemar's test. If subsets are averaged with equal weights, only the bootstrap is valid.

    >>> a, b = np.repeat([1, 0], [90, 10]), np.repeat([1, 0, 1], [70, 25, 5])
    >>> outcomes = (Outcome("SICK-E", "accuracy", "mean", right) for right in (a, b))
    >>> compare_outcomes(*outcomes, names=("A", "B")).verdict.split("; ")[1]
    "more than chance (McNemar's test, p = 0.005)."
    """
    _check_comparable(left, right)
    first, second = resample([left, right], resampling)
    difference = first - second
    method = statistic_of(left).method
    low, high = interval_of(difference, level=resampling.level, method=method)
    p_values = {**_special_tests(left, right), PAIRED[method]: p_value_of(difference, method=method)}
    return Comparison(
        left.task,
        left.protocol if left.protocol == right.protocol else f"{left.protocol}; {right.protocol}",
        names,
        left=first.value,
        right=second.value,
        difference=difference.value,
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
    """Compare two systems on several tasks, listed in the same order, with Holm's correction.

    Of 20 tasks, one differs at the 5 % level by chance alone. The correction keeps the probability of *any* false
    "more than chance" below 5 %. Intervals are not corrected.
    """
    if len(left) != len(right):
        raise InputError(f"{names[0]} has {len(left)} outcomes, but {names[1]} has {len(right)}.")
    single = [compare_outcomes(*pair, names=names, resampling=resampling) for pair in zip(left, right, strict=True)]
    corrected = holm([each.p for each in single])
    return tuple(replace(each, p=p, n_compared=len(single)) for each, p in zip(single, corrected, strict=True))


def _special_tests(left: Outcome, right: Outcome) -> dict[str, float]:
    """P values of the tests designed for this statistic, if any."""
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
    """True where an item is right, ``(n,)``; None if any value is not 0 or 1."""
    if outcome.gold is not None:
        return np.asarray(outcome.predicted == outcome.gold)
    return outcome.predicted == 1 if np.isin(outcome.predicted, (0, 1)).all() else None


def measure_of(protocol: str) -> str:
    """A protocol without what belongs to the system: whether a cosine or a scorer compares two texts, and re-ranking.

    >>> measure_of("Spearman of cosine x 100, all pairs together")
    'Spearman of score x 100, all pairs together'
    """
    plain = re.sub(r", the first \d+ re-ranked by .*$", "", protocol)
    return re.sub(rf"\bcosine( of {DEFAULT_MODEL})?", "score", plain)


def _check_comparable(left: Outcome, right: Outcome) -> None:
    for name in ("task", "protocol", "statistic", "aggregation", "group_names"):
        one, other = getattr(left, name), getattr(right, name)
        if one != other and (name != "protocol" or measure_of(one) != measure_of(other)):
            raise InputError(
                f"The outcomes cannot be compared: their {name.replace('_', ' ')} differs, {one!r} and {other!r}.",
                hint="Run both with the same task and protocol.",
            )
    if len(left) != len(right):
        raise InputError(
            f"{left.task}: one outcome has {len(left)} items, the other {len(right)}.", hint="Run both on all items."
        )
    for name in ("gold", "groups"):
        if not np.array_equal(getattr(left, name), getattr(right, name)):  # None equals None only
            raise InputError(
                f"{left.task}: the two outcomes differ in {name}, so they are not about the same items.",
                hint="Run both on the same version of the data, in the same order.",
            )


def _describe_size(of: Comparison) -> str:
    """Which system scores higher, by how much, and the interval, seen from the higher one."""
    name, low, high = (of.names[1], -of.high, -of.low) if of.difference < 0 else (of.names[0], of.low, of.high)
    interval = f"{100 * of.level:g} % interval {low:.2f} to {high:.2f}"
    if of.difference == 0:
        return f"{of.names[0]} and {of.names[1]} are equal ({interval})"
    return f"{name} is higher by {abs(of.difference):.2f} ({interval})"


def _describe_chance(of: Comparison) -> str:
    uncorrected = of.p_values[of.test]
    tests = f"{TESTS[of.test]}, {_format_p(uncorrected)}"
    if of.n_compared > 1:
        tests += f", after Holm's correction for {of.n_compared} tasks {_format_p(of.p)}"
        if uncorrected < 1 - of.level <= of.p:
            return f"could be chance, as {of.n_compared} tasks were compared ({tests})"
    elif of.is_more_than_chance == (of.low <= 0 <= of.high):
        includes = "includes" if of.low <= 0 else "does not include"
        return f"borderline ({tests}, but the interval {includes} 0)"
    return f"{'more than chance' if of.is_more_than_chance else 'could well be chance'} ({tests})"


def _format_p(value: float) -> str:
    """Format a p value.

    >>> _format_p(0.0000012), _format_p(0.0314), _format_p(0.3)
    ('p < 0.001', 'p = 0.031', 'p = 0.30')
    """
    if value < 0.001:
        return "p < 0.001"
    return f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"


class Compared(NamedTuple):
    """Comparisons of all shared results, and a sentence for each result that could not be compared."""

    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...]


def compare_evaluations(left: Evaluation, right: Evaluation) -> Compared:
    """Compare all shared results item by item, with Holm's correction."""
    ones, others = ({(each.task, measure_of(each.protocol)): each for each in side.results} for side in (left, right))
    both = [key for key in ones if key in others]
    defined = [key for key in both if ones[key].value is not None and others[key].value is not None]
    if not defined:
        raise InputError(
            f"{left.system} and {right.system} have no result in common.",
            hint="Evaluate both on the same tasks under the same protocol.",
        )
    names = (left.system, right.system) if left.system != right.system else ("the first", "the second")
    outcomes = ([results[key].outcome for key in defined] for results in (ones, others))
    comparisons = compare_all(*outcomes, names=names)
    left_out = [f"{key[0]}: undefined for one of the two ({ones[key].protocol})." for key in both if key not in defined]
    for name, mine in ((left.system, ones), (right.system, others)):
        left_out += [f"{key[0]}: only {name} has it ({mine[key].protocol})." for key in mine if key not in both]
    return Compared(comparisons, tuple(left_out))
