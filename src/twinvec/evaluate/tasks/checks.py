"""Checks that tasks share: equally long columns, finite gold scores, at least two items. Errors name the row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TypeVar

from twinvec.errors import InputError, UnknownNameError

__all__ = ["check_choice", "check_columns", "check_finite", "numbered"]

Name = TypeVar("Name", bound=str)


def check_columns(task: str, columns: Mapping[str, Sized], *, at_least: int = 1) -> None:
    """Refuse columns of different lengths, or with too few rows.

    >>> check_columns("sts", {"left": ["a", "b"], "right": ["c", "d"]}, at_least=2)
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise InputError(f"{task}: the columns differ in length: {shown}.", hint="Give one value per row in each.")
    if min(lengths.values()) < at_least:
        raise InputError(f"{task}: {min(lengths.values())} rows, but at least {at_least} are needed.")


def check_finite(task: str, values: Iterable[float], *, what: str) -> None:
    """Refuse a number that is NaN or infinite, naming its row (from 0).

    >>> check_finite("sts", [0.5, 1.0], what="gold score")
    """
    for row, value in enumerate(values):
        if not math.isfinite(value):
            raise InputError(f"{task}, row {row}: the {what} is {value}.", hint="Remove the row or give it a number.")


def check_choice(kind: str, name: str, *, known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones.

    >>> check_choice("statistic", "pearson", known=["pearson", "spearman"])
    """
    choices = list(known)
    if name not in choices:
        raise UnknownNameError(kind, name, choices)


def numbered(values: Sequence[Name]) -> tuple[list[int], tuple[Name, ...]]:
    """Each value as the place of its name among the different names, which are sorted.

    >>> numbered(["news", "forum", "news"])
    ([1, 0, 1], ('forum', 'news'))
    """
    names = tuple(sorted(set(values)))
    place = {name: index for index, name in enumerate(names)}
    return [place[value] for value in values], names
