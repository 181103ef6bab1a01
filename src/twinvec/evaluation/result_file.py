"""Evaluation results with confidence intervals, and their JSON file with every prediction."""

from __future__ import annotations

import base64
import json
import math
import platform
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.choices import AGGREGATIONS
from twinvec.errors import InputError
from twinvec.evaluation.resampling import interval
from twinvec.evaluation.statistics import STATISTICS, Outcome, value_of
from twinvec.files import new_file
from twinvec.json_checks import JsonObject, parse_json
from twinvec.types import Array

__all__ = ["Evaluation", "Result", "Subset", "now", "read_evaluation", "score", "used_versions", "write_evaluation"]

PACKAGES = "twinvec", "numpy", "onnxruntime", "scikit-learn"


@dataclass(frozen=True, slots=True)
class Subset:
    """The score of one subset; if it is undefined, ``value`` is None and ``problem`` says why."""

    name: str
    n: int
    value: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """An outcome with its score.

    ``value``, ``low`` and ``high`` are None if they are undefined; ``problem`` says why.
    """

    outcome: Outcome
    value: float | None
    low: float | None = None
    high: float | None = None
    subsets: tuple[Subset, ...] = ()
    problem: str = ""

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.outcome.task

    @property
    def protocol(self) -> str:
        """How the score was computed, in words."""
        return self.outcome.protocol

    @property
    def n(self) -> int:
        """The number of items."""
        return len(self.outcome)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All results of one system, with the date, settings and versions that produced them."""

    system: str
    identity: str
    date: str
    results: tuple[Result, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def score(outcome: Outcome) -> Result:
    """Score an outcome, with its interval and subsets. An undefined score is None, with a ``problem``; never NaN."""
    value, low, high, problem = None, None, None, ""
    try:
        value = value_of(outcome)
        low, high = interval(outcome)
    except InputError as error:  # from the value, or only from its interval
        problem = error.problem.removeprefix(f"{outcome.task}: ")
    return Result(outcome, value, low, high, _subsets(outcome), problem)


def _subsets(outcome: Outcome) -> tuple[Subset, ...]:
    if outcome.groups is None:
        return ()
    groups = np.asarray(outcome.groups)
    return tuple(_subset_of(outcome, name, np.flatnonzero(groups == i)) for i, name in enumerate(outcome.group_names))


def _subset_of(outcome: Outcome, name: str, items: Array) -> Subset:
    gold = None if outcome.gold is None else outcome.gold[items]
    part = replace(
        outcome, predicted=outcome.predicted[items], gold=gold, groups=None, group_names=(), aggregation="all"
    )
    try:
        return Subset(name, len(items), value_of(part))
    except InputError as error:
        return Subset(name, len(items), None, error.problem.removeprefix(f"{outcome.task}: "))


def used_versions() -> dict[str, str]:
    """Versions of Python and the installed packages that can change a score."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def now() -> str:
    """The current UTC time, as ISO 8601 to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


FORMAT = "twinvec evaluation 1"
DTYPES = "float32", "float64", "int8", "int16", "int32", "int64"
MAX_ITEMS = 10**8
TOLERANCE = 1e-6  # between the value in a file and the value computed from its items


def write_evaluation(evaluation: Evaluation, file: Path, *, replace: bool = False) -> None:
    """Write a file that ``read_evaluation`` reads; it is written completely or not at all."""
    content = json.dumps(evaluation_as_dict(evaluation), indent=1, ensure_ascii=False, allow_nan=False)
    with new_file(file, replace=replace) as stream:
        stream.write(f"{content}\n".encode())


def evaluation_as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """The content of the file."""
    return {
        "format": FORMAT,
        "system": evaluation.system,
        "identity": evaluation.identity,
        "date": evaluation.date,
        "settings": dict(evaluation.settings),
        "versions": dict(evaluation.versions),
        "results": [_result_as_dict(result) for result in evaluation.results],
    }


def _result_as_dict(result: Result) -> dict[str, Any]:
    outcome = result.outcome
    arrays = {"predicted": outcome.predicted, "gold": outcome.gold, "groups": outcome.groups}
    return {
        "task": outcome.task,
        "protocol": outcome.protocol,
        "value": result.value,
        "low": result.low,
        "high": result.high,
        "n": result.n,
        "problem": result.problem,
        "statistic": outcome.statistic,
        "aggregation": outcome.aggregation,
        "subsets": [{"name": s.name, "n": s.n, "value": s.value, "problem": s.problem} for s in result.subsets],
        "group_names": list(outcome.group_names),
        "items": {name: None if values is None else _packed(values) for name, values in arrays.items()},
    }


def read_evaluation(file: Path) -> Evaluation:
    """Read a file strictly: a missing or invalid field, or a value that does not match its items, is an error."""
    hint = "Create the file with: twinvec evaluate --json FILE."
    try:
        raw = file.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"There is no file {file}.", hint=hint) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"{str(file)!r:.200} cannot be read: {reason}.", hint=hint) from error
    content = parse_json(raw, source=str(file))
    file_format = content.get("format") if isinstance(content, dict) else None
    if file_format != FORMAT:
        raise InputError(
            f"{file} is not an evaluation of this version: its format is {file_format!r:.60}, not {FORMAT!r}.",
            hint="Evaluate again with: twinvec evaluate --json FILE.",
        )
    fields = JsonObject(content, file, InputError, hint=hint)
    return Evaluation(
        system=fields.text("system"),
        identity=fields.text("identity"),
        date=fields.text("date"),
        results=tuple(_result(each) for each in fields.objects("results")),
        settings=fields.inner("settings").content,
        versions=fields.inner("versions").content,
    )


def _result(fields: JsonObject) -> Result:
    items = fields.inner("items")
    predicted = _unpacked(items.inner("predicted"))
    gold, groups = (None if items.value(name) is None else _unpacked(items.inner(name)) for name in ("gold", "groups"))
    try:
        outcome = Outcome(
            task=fields.text("task"),
            protocol=fields.text("protocol"),
            statistic=fields.word("statistic", choices=STATISTICS),
            predicted=predicted,
            gold=gold,
            groups=groups,
            group_names=tuple(fields.texts("group_names")),
            aggregation=fields.word("aggregation", choices=AGGREGATIONS),
        )
        value = _value(fields, outcome)
    except InputError as error:
        prefix = "" if error.problem.startswith(str(fields.source)) else f"{fields.source}: "
        raise InputError(f"{prefix}{error.problem}", hint=error.hint) from error
    low, high = (_number(fields, name) for name in ("low", "high"))
    subsets = (
        Subset(each.text("name"), _count(each), _number(each, "value"), each.text("problem"))
        for each in fields.objects("subsets")
    )
    return Result(outcome, value, low, high, tuple(subsets), fields.text("problem"))


def _value(fields: JsonObject, outcome: Outcome) -> float | None:
    value, n = _number(fields, "value"), _count(fields)
    if n != len(outcome):
        raise InputError(f"{outcome.task}: n is {n}, but there are {len(outcome)} items.")
    if value is not None and not math.isclose(value_of(outcome), value, abs_tol=TOLERANCE):
        raise InputError(f"{outcome.task}: the value is {value}, but its items give {value_of(outcome)}.")
    return value


def _number(fields: JsonObject, name: str) -> float | None:
    return None if fields.value(name) is None else fields.number(name)


def _count(fields: JsonObject) -> int:
    return int(fields.integer("n", least=0, most=MAX_ITEMS))


def _packed(values: Array) -> dict[str, Any]:
    """An array ``(n,)`` as text: little-endian, deflated, base64. Integers get the smallest type that fits them.

    >>> _packed(np.array([1, 0, 1]))["dtype"]
    'int8'
    """
    if values.dtype.kind in "iub":
        whole = values.astype(np.int64)
        low, high = whole.min(initial=0), whole.max(initial=0)
        values = whole.astype(next(t for t in DTYPES[2:] if np.iinfo(t).min <= low and high <= np.iinfo(t).max))
    if values.dtype.name not in DTYPES:
        raise InputError(f"Items of type {values.dtype} cannot be stored.", hint="Use numbers.")
    data = zlib.compress(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes(), 6)
    return {"dtype": values.dtype.name, "n": len(values), "data": base64.b64encode(data).decode("ascii")}


def _unpacked(fields: JsonObject) -> Array:
    dtype, n = fields.word("dtype", choices=DTYPES), _count(fields)
    size = n * np.dtype(dtype).itemsize
    try:
        packed = base64.b64decode(fields.text("data"), validate=True)
        raw = zlib.decompressobj().decompress(packed, size + 1)  # the limit guards against a decompression bomb
    except (ValueError, zlib.error) as error:
        raise InputError(f"{fields.source}: the data are damaged: {error}.") from error
    if len(raw) != size:
        raise InputError(f"{fields.source}: the data are not {n} values of type {dtype}.")
    return np.frombuffer(raw, dtype=np.dtype(dtype).newbyteorder("<")).astype(dtype)
