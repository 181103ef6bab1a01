"""An evaluation as JSON, with every item's prediction, so that two files can be compared item by item."""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.errors import InputError
from twinvec.evaluate.outcome import Outcome
from twinvec.evaluate.result import Evaluation, Result, Subset
from twinvec.evaluate.statistics import value_of
from twinvec.tables import new_file
from twinvec.types import Array

__all__ = ["evaluation_as_dict", "read_evaluation", "write_evaluation"]

FORMAT = "twinvec evaluation 1"
DTYPES = "float32", "float64", "int8", "int16", "int32", "int64"
TOLERANCE = 1e-6  # between the number in a file and that of its items


def write_evaluation(evaluation: Evaluation, file: Path, *, replace: bool = False) -> None:
    """Write a file that ``read_evaluation`` reads; it is whole or not there."""
    content = json.dumps(evaluation_as_dict(evaluation), indent=1, ensure_ascii=False, allow_nan=False)
    with new_file(file, replace=replace) as stream:
        stream.write(f"{content}\n".encode())


def evaluation_as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """What the file holds."""
    return {
        "format": FORMAT,
        "subject": evaluation.subject,
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
    """Read a file strictly: a number that is not that of its items, or a missing field, is an error."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"There is no file {file}.", hint="Make it with: twinvec evaluate --json FILE.") from error
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise InputError(
            f"{file} is no evaluation of this version: its format is {found!r}, not {FORMAT!r}.",
            hint="Evaluate again with: twinvec evaluate --json FILE.",
        )
    try:
        return Evaluation(
            subject=str(content["subject"]),
            identity=str(content["identity"]),
            date=str(content["date"]),
            results=tuple(_result(each) for each in content["results"]),
            settings=dict(content["settings"]),
            versions=dict(content["versions"]),
        )
    except KeyError as error:
        raise InputError(f"{file} lacks the field {error.args[0]!r}.") from error
    except (TypeError, ValueError, AttributeError, zlib.error) as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def _result(content: dict[str, Any]) -> Result:
    arrays = {name: None if each is None else _unpacked(each, name) for name, each in content["items"].items()}
    if arrays["predicted"] is None:
        raise InputError(f"{content['task']}: there are no predictions.")
    outcome = Outcome(
        task=content["task"],
        protocol=content["protocol"],
        statistic=content["statistic"],
        predicted=arrays["predicted"],
        gold=arrays["gold"],
        groups=arrays["groups"],
        group_names=tuple(content["group_names"]),
        aggregation=content["aggregation"],
    )
    value = content["value"]
    if value is not None and not math.isclose(value_of(outcome), value, abs_tol=TOLERANCE):
        raise InputError(f"{outcome.task}: the value {value} is not that of its items, {value_of(outcome)}.")
    if content["n"] != len(outcome):
        raise InputError(f"{outcome.task}: n is {content['n']}, but there are {len(outcome)} items.")
    subsets = tuple(Subset(**subset) for subset in content["subsets"])
    return Result(outcome, value, content["low"], content["high"], subsets, content["problem"])


def _packed(values: Array) -> dict[str, Any]:
    """An array ``(n,)`` as text: little-endian, deflated, base64. Whole numbers take the smallest type that holds them.

    >>> _packed(np.array([1, 0, 1]))["dtype"]
    'int8'
    """
    if values.dtype.kind in "iub":
        whole = values.astype(np.int64)
        ends = [int(whole.min(initial=0)), int(whole.max(initial=0))]
        values = whole.astype(next(np.dtype(t) for t in DTYPES[2:] if all(_holds(t, end) for end in ends)))
    if values.dtype.name not in DTYPES:
        raise InputError(f"Items of type {values.dtype} cannot be stored.", hint="Use numbers.")
    data = zlib.compress(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes(), 6)
    return {"dtype": values.dtype.name, "n": len(values), "data": base64.b64encode(data).decode("ascii")}


def _holds(name: str, number: int) -> bool:
    limits = np.iinfo(name)
    return limits.min <= number <= limits.max


def _unpacked(content: dict[str, Any], name: str) -> Array:
    if content["dtype"] not in DTYPES:
        raise InputError(f"{name} has the type {content['dtype']!r}, not one of {', '.join(DTYPES)}.")
    try:
        raw = zlib.decompress(base64.b64decode(content["data"], validate=True))
    except (binascii.Error, zlib.error) as error:
        raise InputError(f"the data of {name} are damaged: {error}.") from error
    values = np.frombuffer(raw, dtype=np.dtype(content["dtype"]).newbyteorder("<"))
    if len(values) != content["n"]:
        raise InputError(f"{name} has {len(values)} values, not {content['n']}.")
    return values.astype(content["dtype"])
