"""An evaluation, done: every outcome with its number, interval and subsets, or with the words why it has none."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluate.bootstrap import interval
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.statistics import value_of
from twinvec.types import Array

__all__ = ["Evaluation", "Result", "Subset", "judge", "now", "used_versions"]

PACKAGES = "twinvec", "numpy", "onnxruntime", "scikit-learn"


@dataclass(frozen=True, slots=True)
class Subset:
    """The number of one subset; None where it is undefined, for the reason in ``problem``."""

    name: str
    n: int
    value: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A judged outcome. ``value``, ``low`` and ``high`` are None where undefined, for the reason in ``problem``."""

    outcome: Outcome
    value: float | None
    low: float | None = None
    high: float | None = None
    subsets: tuple[Subset, ...] = ()
    problem: str = ""

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.outcome.task

    @property
    def protocol(self) -> str:
        """How the number is made, for people."""
        return self.outcome.protocol

    @property
    def n(self) -> int:
        """How many items it is made of."""
        return len(self.outcome)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All results of one subject, with what it takes to know later where they came from."""

    subject: str
    identity: str
    date: str
    results: tuple[Result, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def judge(outcome: Outcome) -> Result:
    """The number of an outcome with its interval and subsets. What is undefined is said in words, never a NaN."""
    value, low, high, problem = None, None, None, ""
    try:
        value = value_of(outcome)
        low, high = interval(outcome)
    except InputError as error:  # of the number, or of its interval alone
        problem = error.problem.removeprefix(f"{outcome.task}: ")
    return Result(outcome, value, low, high, _subsets(outcome), problem)


def _subsets(outcome: Outcome) -> tuple[Subset, ...]:
    if outcome.groups is None:
        return ()
    places = np.asarray(outcome.groups)
    return tuple(_subset(outcome, name, np.flatnonzero(places == i)) for i, name in enumerate(outcome.group_names))


def _subset(outcome: Outcome, name: str, items: Array) -> Subset:
    gold = None if outcome.gold is None else outcome.gold[items]
    part = replace(
        outcome, predicted=outcome.predicted[items], gold=gold, groups=None, group_names=(), aggregation="all"
    )
    try:
        return Subset(name, len(items), value_of(part))
    except InputError as error:
        return Subset(name, len(items), None, error.problem.removeprefix(f"{outcome.task}: "))


def used_versions() -> dict[str, str]:
    """Versions of what a number can depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def now() -> str:
    """The time, in UTC, as ISO 8601 to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
