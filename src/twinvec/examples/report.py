"""What the check of a file of examples finds, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from twinvec.examples.survey import Fault

__all__ = ["Contradiction", "DataReport", "Finding", "Overlap", "Scores", "TokenLengths"]


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
