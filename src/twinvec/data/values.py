"""Check one value of a file: a text, several texts, a label, score, mark or margin. Errors name the line or row."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from shlex import quote

from twinvec.data.roles import DataSource, TargetValues
from twinvec.data.table import text_of
from twinvec.errors import InputError, RowError
from twinvec.json_checks import shown_json
from twinvec.model.tokenizer import check_text

__all__ = ["TARGETS", "one_text", "range_hint", "texts_of"]

MAX_MARGIN = 1e30
MARKS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}
COMMON_RANGES = ((0, 1), (-1, 1), (0, 5), (0, 10), (0, 100))  # suggested in hints


def one_text(value: object, column: str, *, where: str) -> str:
    """Return a text that can be tokenized, or raise an error.

    >>> one_text("A cat.", "text", where="a.csv, line 2")
    'A cat.'
    """
    text = text_of(value, column, where=where)
    if text.isascii():  # fast, and ASCII has no lone surrogates
        return text
    try:
        return check_text(text, f"{where}: {column!r}")
    except InputError as error:
        raise RowError(error.problem, fault="not a text", hint=error.hint) from error


def texts_of(value: object, column: str, *, where: str) -> list[str]:
    """The texts in one column, which has a text or a list of texts.

    >>> texts_of(["A dog.", "A cow."], "negative", where="a.jsonl, line 2")
    ['A dog.', 'A cow.']
    """
    values = value if isinstance(value, list) else [value]
    return [one_text(each, column, where=where) for each in values]


def label_of(value: object, source: DataSource, *, where: str) -> str | None:
    """The name of a class; None if it is ignored. Integers are names too.

    >>> label_of(2.0, DataSource("a.jsonl", "labelled_pairs"), where="a.jsonl, line 2")
    '2'
    """
    label = _name(value, where)
    if label in source.ignore_labels:
        return None
    if not label:
        raise RowError(f"{where}: the label is empty.", fault="empty label", hint="Write a label, or remove the row.")
    if source.labels is not None and label not in source.labels:
        raise RowError(
            f"{where}: unknown label {label!r}.{_nearest(label, source.labels)}",
            fault="unknown label",
            hint=f"Known labels: {', '.join(source.labels)}. Add the label, or skip such rows with ignore_labels "
            f"(--ignore-label {quote(label)}).",
        )
    return sys.intern(label)


def score_of(value: object, source: DataSource, *, where: str) -> float:
    """A number in the score range.

    >>> score_of("4.5", DataSource("a.csv", "scored_pairs", score_range=(0, 5)), where="a.csv, line 2")
    4.5
    """
    score = _number(value, "score", where=where)
    low, high = source.score_range
    if not low <= score <= high:
        raise RowError(
            f"{where}: the score {score:g} is not in the range {low:g} to {high:g}.",
            fault="score out of range",
            hint=range_hint(score),
        )
    return score


def margin_of(value: object, source: DataSource, *, where: str) -> float:
    """A teacher's margin: any finite number.

    >>> margin_of("-3.5", DataSource("a.csv", "scored_triplets"), where="a.csv, line 2")
    -3.5
    """
    margin = _number(value, "margin", where=where)
    if abs(margin) > MAX_MARGIN:
        raise RowError(
            f"{where}: the margin is {margin:g}.", fault="margin too large", hint="Write a finite float32 number."
        )
    return margin


def _number(value: object, what: str, *, where: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise RowError(
            f"{where}: the {what} is {shown_json(value, 40)}, not a number.",
            fault=f"{what} is not a number",
            hint="Write a number, or remove the row.",
        )
    return number


def range_hint(*scores: float) -> str:
    """A hint for setting the score range, with a common range that contains these scores.

    >>> range_hint(4.2)[:40]
    'Set the score range: --score-range 0 5 ('
    """
    fitting = (ends for ends in COMMON_RANGES if ends[0] <= min(scores) and max(scores) <= ends[1])
    low, high = next(fitting, ("LOW", "HIGH"))
    return (
        f"Set the score range: --score-range {low} {high} (dev files: --dev-score-range), "
        f"or score_range = [{low}, {high}] in a recipe."
    )


def mark_of(value: object, source: DataSource, *, where: str) -> float | None:
    """0 or 1; None if the row is ignored.

    >>> mark_of("true", DataSource("a.csv", "marked_pairs"), where="a.csv, line 2")
    1.0
    """
    label = _name(value, where)
    if label in source.ignore_labels:
        return None
    mark = MARKS.get(label.lower())
    if mark is None:
        raise RowError(
            f"{where}: the label is {shown_json(value, 40)}, not 0 or 1.",
            fault="label is not 0 or 1",
            hint="For class names, use the kind labelled_pairs and map its roles premise and hypothesis; skip rows "
            f"with other labels with ignore_labels (--ignore-label {quote(label)}).",
        )
    return mark


def _name(value: object, where: str) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    raise RowError(
        f"{where}: the label is {shown_json(value, 40)}.",
        fault="label is not a name",
        hint="Write a string or an integer, or remove the row.",
    )


@lru_cache(maxsize=1024)  # the same wrong label may occur in many rows
def _nearest(label: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(label, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


TARGETS: dict[TargetValues, Callable[..., str | float | None]] = {
    "names": label_of,
    "numbers": score_of,
    "marks": mark_of,
    "margins": margin_of,
}
