"""The number of one task with its interval, and its spread over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinvec.errors import InputError
from twinvec.evaluate.bootstrap import interval
from twinvec.evaluate.drawing import USUAL, Resampling
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.statistics import group_values, value_of

__all__ = ["Score", "Spread", "score", "spread"]


@dataclass(frozen=True)
class Score:
    """A number times 100, with its interval from ``low`` to ``high``, of ``n`` items; ``groups`` are the subsets'."""

    task: str
    protocol: str
    value: float
    low: float
    high: float
    n: int
    groups: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """A score over at least two seeds, which tells of training; an interval tells of the test items.

    >>> Spread("STSb", "Spearman", (84.0, 86.0)).deviation.__round__(4)
    1.4142
    """

    task: str
    protocol: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise InputError(f"{self.task}: a spread needs at least 2 seeds, got {len(self.values)}.")

    @property
    def mean(self) -> float:
        """The mean of all seeds."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation of a sample (n - 1)."""
        return statistics.stdev(self.values)


def score(outcome: Outcome, resampling: Resampling = USUAL) -> Score:
    """The number of an outcome, its interval, and the numbers of its subsets (see ``group_values``).

    >>> import numpy as np
    >>> found = score(Outcome("TREC", "accuracy", "mean", np.repeat([1, 0], [80, 20])))
    >>> found.value, found.n, found.low < 80 < found.high
    (80.0, 100, True)
    """
    value = value_of(outcome)
    low, high = interval(outcome, resampling)
    return Score(outcome.task, outcome.protocol, value, low, high, n=len(outcome), groups=group_values(outcome))


def spread(scores: Sequence[Score]) -> Spread:
    """Gather the scores of one task over seeds."""
    kinds = sorted({(each.task, each.protocol) for each in scores})
    if len(kinds) != 1:
        raise InputError(
            f"A spread is over the seeds of one task and protocol, got {len(kinds)}: {kinds}.",
            hint="Gather the scores of each task by themselves.",
        )
    return Spread(*kinds[0], values=tuple(each.value for each in scores))
