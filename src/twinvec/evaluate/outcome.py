"""What running a task gives: a prediction for every item, beside what people said, and which number is made of them.

Nothing is averaged away here, so that intervals and paired tests can be computed later, also from a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twinvec.errors import InputError
from twinvec.types import Array

__all__ = ["Aggregation", "Outcome"]

Aggregation = Literal["all", "mean", "weighted mean"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """One number of one task, before it is computed.

    ``statistic`` is a name of ``STATISTICS``: how a number is made of ``predicted`` and ``gold``, both ``(n,)``
    (``gold`` is None where each prediction is itself the item's value, such as an nDCG or 1 for a right answer).
    ``groups`` is ``(n,)``, the place of each item's subset in ``group_names``, where the task has subsets:
    ``aggregation`` says whether all items are taken together, or the subsets' numbers are averaged.
    ``protocol`` names all of this for people.
    """

    task: str
    protocol: str
    statistic: str
    predicted: Array
    gold: Array | None = None
    groups: Array | None = None
    group_names: tuple[str, ...] = ()
    aggregation: Aggregation = "all"

    def __post_init__(self) -> None:
        for name in ("gold", "groups"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.predicted):
                raise InputError(f"{self.task}: {len(self.predicted)} predictions, but {len(values)} values of {name}.")
        if self.aggregation != "all" and self.groups is None:
            raise InputError(f"{self.task}: the {self.aggregation} of subsets needs subsets.")

    def __len__(self) -> int:
        return len(self.predicted)
