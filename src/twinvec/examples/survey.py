"""Examples as the checker reads them: bad rows are counted by what is wrong with them, and the rest is read on."""

from __future__ import annotations

from dataclasses import dataclass, field

from twinvec.errors import InputError, RowError
from twinvec.examples.data import Examples
from twinvec.examples.gathering import Gathered, gather_examples
from twinvec.examples.reading import check_whole
from twinvec.examples.source import DataSource
from twinvec.tables import Table

__all__ = ["N_SHOWN", "Fault", "Survey", "survey_examples"]

N_SHOWN = 3  # of everything that is found, the first few are kept to be shown


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows that training would refuse for one reason: how many, the errors of the first few, and what to do."""

    name: str
    count: int
    shown: tuple[str, ...]
    hint: str


@dataclass(frozen=True, eq=False)
class Survey:
    """A file read to its end. ``refusal`` is what training would say of it as a whole, if all its rows were good."""

    source: DataSource
    found: Gathered
    faults: tuple[Fault, ...] = ()
    refusal: str = ""

    @property
    def examples(self) -> Examples:
        """The good rows."""
        return self.found.examples


def survey_examples(source: DataSource, table: Table) -> Survey:
    """Read an open table to its end, whatever its rows hold."""
    faults = _Faults()
    found = gather_examples(source, table, on_bad=faults.add)
    refusal = ""
    try:
        if len(found.examples) or not faults.counts:
            check_whole(found, source)
    except InputError as error:
        refusal = str(error)
    return Survey(source, found, faults.summary(), refusal)


@dataclass(frozen=True, slots=True)
class _Faults:
    """Counts errors by fault and keeps the first few, so that a file of bad rows does not fill the memory."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[RowError]] = field(default_factory=dict)

    def add(self, error: RowError) -> None:
        """Count one."""
        self.counts[error.fault] = self.counts.get(error.fault, 0) + 1
        kept = self.first.setdefault(error.fault, [])
        if len(kept) < N_SHOWN:
            kept.append(error)

    def summary(self) -> tuple[Fault, ...]:
        """The faults, most frequent first."""
        return tuple(
            Fault(name, count, tuple(error.problem for error in self.first[name]), self.first[name][0].hint)
            for name, count in sorted(self.counts.items(), key=lambda item: -item[1])
        )
