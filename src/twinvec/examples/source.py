"""Where examples come from: a file, the kind of its rows, and which column plays which role."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from twinvec.errors import InputError, UnknownNameError
from twinvec.examples.roles import Kind, find_kind
from twinvec.tables.formats import READ_FORMATS

__all__ = ["DataSource"]


@dataclass(frozen=True)
class DataSource:
    """A file of examples. A role that ``columns`` does not mention is read from the column of its own name.

    Args:
        columns: role -> its column; for the role ``negative`` of ranked examples also several columns.
        format: csv, tsv, jsonl, parquet or lines; by default the ending of the file says it.
        labels: names of the classes, in the order of their numbers; by default those found, sorted.
        ignore_labels: rows with one of these labels are left out.
        score_range: the lowest and the highest possible score; scores are scaled from it to 0 .. 1.
    """

    file: str | Path
    kind: str
    columns: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    format: str | None = None
    labels: tuple[str, ...] | None = None
    ignore_labels: tuple[str, ...] = ()
    score_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        kind = find_kind(self.kind)
        if self.format is not None and self.format not in tuple(READ_FORMATS):
            raise UnknownNameError("format", self.format, READ_FORMATS)
        # Lists come from TOML and JSON; kept as tuples, they stay as they were checked.
        object.__setattr__(self, "columns", {role: _column(role, names) for role, names in self.columns.items()})
        if self.labels is not None:
            object.__setattr__(self, "labels", _names(self.labels, "labels"))
        object.__setattr__(self, "ignore_labels", _names(self.ignore_labels, "ignore_labels"))
        object.__setattr__(self, "score_range", _range(self.score_range))
        _check_columns(kind, self)
        _check_target(kind, self)

    def columns_of(self, role: str) -> tuple[str, ...]:
        """The columns of a role: those it was mapped to, or the one of its own name."""
        names = self.columns.get(role, role)
        return (names,) if isinstance(names, str) else names


def _check_columns(kind: Kind, source: DataSource) -> None:
    for role, names in source.columns.items():
        if role not in kind.roles:
            raise UnknownNameError(f"role of {kind.name}:", role, kind.roles)
        if len(source.columns_of(role)) > 1 and role != kind.many:
            raise InputError(
                f"The role {role!r} of {kind.name} was given {len(names)} columns: {', '.join(names)}.",
                hint="Name one; only 'negative' of the kind ranked may have several.",
            )
    taken: dict[str, str] = {}
    for role in (role for role in kind.roles if role != kind.many or role in source.columns):
        for column in source.columns_of(role):
            if column in taken:
                raise InputError(
                    f"The column {column!r} was given to the role {taken[column]!r} and to {role!r}.",
                    hint="Give every role a column of its own; one that is not mapped takes the column of its name.",
                )
            taken[column] = role


def _check_target(kind: Kind, source: DataSource) -> None:
    if source.labels is not None:
        if kind.values != "names":
            raise InputError(f"Examples of the kind {kind.name} have no named labels, but labels were given.")
        twice = [name for name, count in Counter(source.labels).items() if count > 1]
        both = sorted(set(source.labels) & set(source.ignore_labels))
        if not source.labels or twice or both:
            what = f"{twice[0]!r} twice" if twice else f"{both[0]!r}, which is also ignored" if both else "none"
            raise InputError(f"The labels name {what}: {source.labels}.", hint="Name each label once.")
    if source.ignore_labels and kind.target != "label":
        raise InputError(f"Examples of the kind {kind.name} have no labels, but ignore_labels were given.")
    if source.score_range != (0.0, 1.0) and kind.values != "numbers":
        raise InputError(f"Examples of the kind {kind.name} have no scores, but score_range was given.")


def _column(role: str, given: object) -> str | tuple[str, ...]:
    names = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"The column of the role {role!r} must be a name, or several, got {given!r}.",
            hint='Write columns = {premise = "sentence1"}.',
        )
    return names if len(names) > 1 else names[0]


def _names(names: Iterable[object], what: str) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)):
        raise InputError(f"{what} must be a list of names, got {names!r}.", hint=f"Write [{names!r}].")
    found = tuple(names)
    if not all(isinstance(name, (str, int, float)) for name in found):
        raise InputError(f"{what} must be a list of names, got {found!r:.80}.")
    return tuple(str(name) for name in found)


def _range(given: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given if not isinstance(end, (str, bool)))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"score_range must be two numbers, got {given!r}.", hint="Write (0, 5).") from error
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"score_range must go from a low number to a higher one, got {low:g} to {high:g}.")
    return low, high
