"""The rows of a file to arrays, in one pass; what happens to a bad row is the caller's choice."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from twinvec.errors import InputError, RowError
from twinvec.examples.columns import find_columns
from twinvec.examples.data import Examples
from twinvec.examples.roles import Kind, TargetValues, find_kind
from twinvec.examples.rows import Example, Target, row_parser
from twinvec.examples.source import DataSource
from twinvec.tables import Table
from twinvec.types import Array, Ids

__all__ = ["Gathered", "gather_examples", "sorted_labels"]


@dataclass(frozen=True, eq=False)
class Gathered:
    """What the good rows of a file hold. ``numbers`` is ``(n,)``: the ``unit``, line or row, of each example in it."""

    file: str
    examples: Examples
    columns: dict[str, tuple[str, ...]]
    unit: str
    numbers: Ids
    n_ignored: int


def gather_examples(source: DataSource, table: Table, *, on_bad: Callable[[RowError], None]) -> Gathered:
    """The examples in an open table. ``on_bad`` gets the error of every row that cannot be used, and may raise it."""
    empty = InputError(f"{table.name} holds no rows.", hint="Give it at least one row.")
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
    """Grows as rows are read: each different text is held once, and 8 bytes for each place where it stands."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.index: dict[str, int] = {}
        self.places = array("q")
        self.targets: list[Target] = []
        self.numbers = array("q")
        self.width: int | None = None  # texts in a row, as in the first

    def add(self, example: Example, number: int, *, where: str) -> None:
        """Take in one example, which must have as many texts as the first."""
        if len(example.texts) != self.width:
            if self.width is not None:
                raise self._other_count(len(example.texts), where)
            self.width = len(example.texts)
        index = self.index
        self.places.extend([index.setdefault(text, len(index)) for text in example.texts])
        self.targets.append(example.target)
        self.numbers.append(number)

    def _other_count(self, width: int, where: str) -> RowError:
        first, here = (count - len(self.kind.texts) for count in (self.width or 0, width))
        return RowError(
            f"{where}: the row has {here} negatives, the first row {first}.",
            fault="other number of negatives than in the first row",
            hint="Give every row the same number; repeat one, or leave the rest out.",
        )

    def examples(self, source: DataSource) -> Examples:
        """All that was taken in."""
        single = self.kind.texts
        grid = np.array(self.places, dtype=np.int64).reshape(-1, self.width or len(single))
        places = {role: grid[:, column].copy() for column, role in enumerate(single)}
        if self.kind.many and grid.shape[1] > len(single):
            places[self.kind.many] = grid[:, len(single) :].copy()
        targets, labels = TARGET_ARRAYS[self.kind.values](self.targets, source)
        return Examples(Path(source.file).name, self.kind.name, list(self.index), places, targets, labels)


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
    None: lambda targets, source: (None, ()),
}


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in the order of their class numbers: by name, or by value if all are whole numbers.

    >>> sorted_labels({"10", "9", "-1"}), sorted_labels({"neutral", "entailment"})
    (('-1', '9', '10'), ('entailment', 'neutral'))
    """
    names = sorted(labels)
    are_numbers = all(name.removeprefix("-").isdecimal() for name in names)
    return tuple(sorted(names, key=int) if are_numbers else names)
