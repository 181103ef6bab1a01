"""Tests of whether a difference is more than chance: Williams', McNemar's, and Holm's correction for several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from twinvec.errors import InputError
from twinvec.extras import require

__all__ = ["holm", "mcnemar", "williams", "williams_t"]

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
