"""A table that is open: the names of its columns are known, its rows are still to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from twinvec.errors import RowError

__all__ = ["Record", "Row", "Table"]

# What a format gives of each row: its number, and its values in the order of the columns asked for.
Record: TypeAlias = tuple[int, Sequence[object]] | RowError


class Row(NamedTuple):
    """One row: where it stands, as messages say it, its values by column, and the number of its line or row."""

    where: str
    values: dict[str, object]
    number: int


@dataclass(frozen=True, slots=True)
class Table:
    """A file, its columns, and its rows, which can be read once.

    A row that cannot be read comes as its error and the rows after it follow, so the caller may raise or count it.
    ``records`` is the format's own reader, for columns that exist; ``unit`` is what rows are numbered by.
    """

    name: str
    columns: tuple[str, ...]
    unit: str
    records: Callable[[Sequence[str]], Iterator[Record]]

    def rows(self, columns: Sequence[str]) -> Iterator[Row | RowError]:
        """Every row with its values in some of the table's columns."""
        for record in self.records(columns):
            if isinstance(record, RowError):
                yield record
            else:
                number, values = record
                yield Row(self.where(number), dict(zip(columns, values, strict=True)), number)

    def where(self, number: int) -> str:
        """How messages call the place of a row."""
        return f"{self.name}, {self.unit} {number}"
