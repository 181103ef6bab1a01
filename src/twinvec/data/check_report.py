"""What a check of training data found, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from twinvec.data.examples import Examples, Gathered, check_whole, gather_examples
from twinvec.data.roles import DataSource
from twinvec.data.table import Table
from twinvec.errors import InputError, RowError

__all__ = [
    "N_SHOWN",
    "Contradiction",
    "DataReport",
    "Finding",
    "Overlap",
    "Scores",
    "Survey",
    "TokenLengths",
    "survey_examples",
]

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


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows that share a property: how many, and the numbers of the first few in the file."""

    count: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Texts that stand in two rows with different targets."""

    texts: tuple[str, ...]
    rows: tuple[int, int]
    targets: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores in the range that was given, ``low`` to ``high``; ``counts`` in ten equal parts of it."""

    low: float
    high: float
    least: float
    mean: float
    highest: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Texts that another file holds too: of its ``n_texts``, ``n_shared`` stand in ``n_rows`` rows of this one."""

    file: str
    n_texts: int
    n_shared: int
    n_rows: int
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenLengths:
    """Tokens of the different texts, special ones included, and how many texts are beyond the model's limit."""

    limit: int
    mean: float
    percentile_95: int
    longest: int
    n_cut: int


@dataclass(frozen=True, slots=True)
class DataReport:
    """A file of examples, described. Training takes it if there are no ``faults`` and no ``refusal``.

    ``unit`` is what the rows are numbered by, line or row; ``n_texts`` counts different texts, in good rows.
    """

    file: str
    kind: str
    columns: dict[str, tuple[str, ...]]
    unit: str
    n_rows: int
    n_good: int
    n_ignored: int
    n_texts: int
    faults: tuple[Fault, ...]
    refusal: str
    labels: dict[str, int]
    scores: Scores | None
    duplicates: Finding
    equal_texts: Finding
    empty_texts: Finding
    n_contradictions: int
    contradictions: tuple[Contradiction, ...]
    overlaps: tuple[Overlap, ...]
    tokens: TokenLengths | None

    @property
    def n_bad(self) -> int:
        """Rows that training would refuse."""
        return sum(fault.count for fault in self.faults)

    @property
    def is_usable(self) -> bool:
        """Whether training would take the file."""
        return not self.faults and not self.refusal

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return {"is_usable": self.is_usable, "n_bad": self.n_bad, **asdict(self)}
