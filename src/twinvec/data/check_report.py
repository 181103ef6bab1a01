"""The results of a check of training data."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
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

N_SHOWN = 3  # examples kept of each finding


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows that training would reject for one reason: their count, the first few errors, and a hint."""

    name: str
    count: int
    shown: tuple[str, ...]
    hint: str


@dataclass(frozen=True, eq=False)
class Survey:
    """A file read to the end. ``refusal`` is the error that training would raise about the file as a whole, if any."""

    source: DataSource
    found: Gathered
    faults: tuple[Fault, ...] = ()
    refusal: str = ""

    @property
    def examples(self) -> Examples:
        """The valid rows."""
        return self.found.examples


def survey_examples(source: DataSource, table: Table) -> Survey:
    """Read an open table to the end, and collect the errors of its rows."""
    counts: Counter[str] = Counter()
    first: dict[str, list[RowError]] = {}  # a few errors of each fault, to limit memory

    def count(error: RowError) -> None:
        counts[error.fault] += 1
        if counts[error.fault] <= N_SHOWN:
            first.setdefault(error.fault, []).append(error)

    found = gather_examples(source, table, on_bad=count)
    refusal = ""
    try:
        if len(found.examples) or not counts:
            check_whole(found, source)
    except InputError as error:
        refusal = str(error)
    faults = tuple(
        Fault(name, n, tuple(error.problem for error in first[name]), first[name][0].hint)
        for name, n in counts.most_common()
    )
    return Survey(source, found, faults, refusal)


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows with one property: their count, and the line or row numbers of the first few."""

    count: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Texts that occur in two rows with different targets."""

    texts: tuple[str, ...]
    rows: tuple[int, int]
    targets: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores in the range ``low`` to ``high``, and their histogram ``counts`` over ten equal bins."""

    low: float
    high: float
    least: float
    mean: float
    highest: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Texts shared with another file: ``n_shared`` of its ``n_texts`` occur in ``n_rows`` rows of this one."""

    file: str
    n_texts: int
    n_shared: int
    n_rows: int
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenLengths:
    """Token counts of the distinct texts, including special tokens; ``n_cut`` texts exceed the model's limit."""

    limit: int
    mean: float
    percentile_95: int
    longest: int
    n_cut: int


@dataclass(frozen=True, slots=True)
class DataReport:
    """A report on a file of examples. Training accepts the file if it has no ``faults`` and no ``refusal``.

    ``unit`` says what numbers count, line or row; ``n_texts`` counts distinct texts in valid rows.
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
        """The number of rows that training would reject."""
        return sum(fault.count for fault in self.faults)

    @property
    def is_usable(self) -> bool:
        """Whether training would accept the file."""
        return not self.faults and not self.refusal

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {"is_usable": self.is_usable, "n_bad": self.n_bad, **asdict(self)}
