"""Training examples in memory: each distinct text once, and arrays of text indices for each role."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from twinvec.data.read import open_table
from twinvec.data.roles import DataSource, Kind, TargetValues, find_columns, find_kind
from twinvec.data.table import Row, Table
from twinvec.data.values import TARGETS, one_text, range_hint, texts_of
from twinvec.errors import InputError, RowError
from twinvec.types import Array, Ids

__all__ = ["Examples", "Gathered", "check_whole", "gather_examples", "read_examples"]


@dataclass(frozen=True, eq=False)
class Examples:
    """``n`` examples of one kind.

    ``texts`` has every distinct text once, in the order of first appearance. ``indices`` maps each text role to rows
    of ``texts``: ``(n,)`` int64, or ``(n, n_negatives)`` for the role negative of ranked examples. ``targets`` is
    ``(n,)``: class numbers (int64, names in ``labels``), scores from 0 to 1, marks 0 and 1, margins (all three
    float32), or None.
    """

    name: str
    kind: str
    texts: list[str]
    indices: dict[str, Ids]
    targets: Array | None = None
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.indices.values())))

    def digest(self) -> str:
        """SHA-256 of all that training sees: equal for equal examples, on any machine and for any file name.

        >>> one = Examples("a.txt", "texts", ["Hi."], {"text": np.array([0])})
        >>> one.digest() == Examples("b.csv", "texts", ["Hi."], {"text": np.array([0])}).digest()
        True
        """
        state = hashlib.sha256(json.dumps([self.kind, self.labels, len(self.texts)]).encode())
        for text in self.texts:
            data = text.encode()
            state.update(len(data).to_bytes(8, "little") + data)  # the length separates "ab", "c" from "a", "bc"
        arrays = {f"place {role}": array for role, array in sorted(self.indices.items())}
        if self.targets is not None:
            arrays["targets"] = self.targets
        for role, values in arrays.items():
            fixed = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
            state.update(json.dumps([role, fixed.dtype.str, fixed.shape]).encode() + fixed.tobytes())
        return state.hexdigest()


Target: TypeAlias = str | float | None  # a class name, a score or mark, or none


class Example(NamedTuple):
    """The texts of one row, in the order of the roles, and its target as in the file."""

    texts: list[str]
    target: Target


def row_parser(source: DataSource, columns: Mapping[str, tuple[str, ...]]) -> Callable[[Row], Example | None]:
    """Return a function that parses a row into an example, or None for an ignored row.

    >>> parse = row_parser(DataSource("a.csv", "texts"), {"text": ("text",)})
    >>> parse(Row("a.csv, line 2", {"text": "A cat."}, 2))
    Example(texts=['A cat.'], target=None)
    """
    kind = find_kind(source.kind)
    single = [columns[role][0] for role in kind.texts]
    several = columns.get(kind.many, ()) if kind.many else ()
    target_column = columns[kind.target][0] if kind.target else ""
    target_of = TARGETS[kind.values] if kind.values else None

    def parse(row: Row) -> Example | None:
        target: Target = None
        if target_of and (target := target_of(row.values[target_column], source, where=row.where)) is None:
            return None
        texts = [one_text(row.values[column], column, where=row.where) for column in single]
        for column in several:
            texts += texts_of(row.values[column], column, where=row.where)
        return Example(texts, target)

    return parse


@dataclass(frozen=True, eq=False)
class Gathered:
    """The valid rows of a file. ``numbers`` ``(n,)`` is the line or row number, by ``unit``, of each example."""

    file: str
    examples: Examples
    columns: dict[str, tuple[str, ...]]
    unit: str
    numbers: Ids
    n_ignored: int


def gather_examples(source: DataSource, table: Table, *, on_bad: Callable[[RowError], None]) -> Gathered:
    """Read the examples of an open table. ``on_bad`` gets the error of every invalid row, and may raise it."""
    empty = InputError(f"{table.name} has no rows.", hint="Add at least one row.")
    if not table.columns:
        raise empty
    columns = find_columns(source, table)
    parse, builder = row_parser(source, columns), _Builder(find_kind(source.kind))
    n_rows, n_ignored = 0, 0
    for row in table.rows(list(chain.from_iterable(columns.values()))):
        n_rows += 1
        try:
            if isinstance(row, RowError):
                raise row
            example = parse(row)
            if example is None:
                n_ignored += 1
            else:
                builder.add(example, row.number, where=row.where)
        except RowError as error:
            on_bad(error)
    if not n_rows:
        raise empty
    numbers = np.array(builder.numbers, dtype=np.int64)
    return Gathered(table.name, builder.examples(source), columns, table.unit, numbers, n_ignored)


class _Builder:
    """Collects examples: each distinct text once, and 8 bytes per occurrence."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.index: dict[str, int] = {}
        self.indices = array("q")
        self.targets: list[Target] = []
        self.numbers = array("q")
        self.width: int | None = None  # texts per row, set by the first row

    def add(self, example: Example, number: int, *, where: str) -> None:
        """Add an example, which must have as many texts as the first."""
        if len(example.texts) != self.width:
            if self.width is not None:
                raise self._other_count(len(example.texts), where)
            self.width = len(example.texts)
        index = self.index
        self.indices.extend([index.setdefault(text, len(index)) for text in example.texts])
        self.targets.append(example.target)
        self.numbers.append(number)

    def _other_count(self, width: int, where: str) -> RowError:
        first, here = (count - len(self.kind.texts) for count in (self.width or 0, width))
        return RowError(
            f"{where}: the row has {here} negatives, but the first row has {first}.",
            fault="different number of negatives than the first row",
            hint="Use the same number in every row: repeat one, or drop the rest.",
        )

    def examples(self, source: DataSource) -> Examples:
        """Return all examples added."""
        single = self.kind.texts
        grid = np.array(self.indices, dtype=np.int64).reshape(-1, self.width or len(single))
        indices = {role: grid[:, column].copy() for column, role in enumerate(single)}
        if self.kind.many and grid.shape[1] > len(single):
            indices[self.kind.many] = grid[:, len(single) :].copy()
        targets, labels = TARGET_ARRAYS[self.kind.values](self.targets, source)
        return Examples(Path(source.file).name, self.kind.name, list(self.index), indices, targets, labels)


def _classes(targets: Sequence[Target], source: DataSource) -> tuple[Array, tuple[str, ...]]:
    labels = sorted_labels({str(label) for label in targets}) if source.labels is None else source.labels
    numbers = {label: number for number, label in enumerate(labels)}
    return np.array([numbers[str(label)] for label in targets], dtype=np.int64), labels


def _scores(targets: Sequence[Target], source: DataSource) -> tuple[Array, tuple[str, ...]]:
    low, high = source.score_range
    return ((np.array(targets, dtype=np.float64) - low) / (high - low)).astype(np.float32), ()


TARGET_ARRAYS: dict[TargetValues | None, Callable[..., tuple[Array | None, tuple[str, ...]]]] = {
    "names": _classes,
    "numbers": _scores,
    "marks": lambda targets, source: (np.array(targets, dtype=np.float32), ()),
    "margins": lambda targets, source: (np.array(targets, dtype=np.float32), ()),
    None: lambda targets, source: (None, ()),
}


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in the order of their class numbers: by name, or by value if all are integers.

    >>> sorted_labels({"10", "9", "-1"}), sorted_labels({"neutral", "entailment"})
    (('-1', '9', '10'), ('entailment', 'neutral'))
    """
    names = sorted(labels)
    are_numbers = all(name.removeprefix("-").isdecimal() for name in names)
    return tuple(sorted(names, key=int) if are_numbers else names)


LEAST_ROWS = 20  # needed to judge the score range
LOW_PART = 0.2
ROUNDING = 1e-6  # of float32


def read_examples(source: DataSource) -> Examples:
    """Read all examples of a file. The first invalid row raises an error with its line or row number."""
    found = gather_examples(source, open_table(source.file, format=source.format), on_bad=_refuse)
    check_whole(found, source)
    return found.examples


def _refuse(error: RowError) -> NoReturn:
    raise error


def check_whole(found: Gathered, source: DataSource) -> None:
    """Raise an error if all rows are ignored, or all scores are at the bottom of the score range."""
    if not len(found.examples):
        raise InputError(
            f"All {found.n_ignored:,} rows of {found.file} have an ignored label: {', '.join(source.ignore_labels)}.",
            hint="Remove labels from ignore_labels (--ignore-label), or use another file.",
        )
    scores = found.examples.targets
    if find_kind(source.kind).values != "numbers" or scores is None or len(scores) < LEAST_ROWS:
        return
    low, high = source.score_range
    # Six digits, so that float32 rounding does not turn a score of 5 into more than 5.
    least, highest = (float(f"{low + float(end) * (high - low):.6g}") for end in (scores.min(), scores.max()))
    if float(scores.max()) <= LOW_PART + ROUNDING:
        raise InputError(
            f"The highest of {len(scores):,} scores in {found.file} is {highest:g}, far below the top of the score "
            f"range {low:g} to {high:g}: the range is probably wrong.",
            hint=range_hint(least, highest),
        )
