"""What a bulk job is told, says on its way, and reports at its end."""

from __future__ import annotations

from dataclasses import dataclass

from twinvec.bulk.shard_file import ENDINGS, ShardFormat
from twinvec.errors import InputError, UnknownNameError

__all__ = ["BulkReport", "BulkSettings", "BulkState"]


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """How a job runs. None leaves a choice to the folder, or to the usual: Parquet shards of 16,384 texts.

    ``force`` starts over in a folder that has a job. ``max_memory_bytes`` bounds the whole process.
    """

    shard_rows: int | None = None
    shard_format: ShardFormat | None = None
    max_memory_bytes: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.shard_rows is not None and self.shard_rows < 1:
            raise InputError(f"shard_rows must be at least 1, got {self.shard_rows}.")
        if self.shard_format is not None and self.shard_format not in ENDINGS:
            raise UnknownNameError("shard format", self.shard_format, ENDINGS)
        if self.max_memory_bytes is not None and self.max_memory_bytes < 1:
            raise InputError(f"max_memory_bytes must be at least 1, got {self.max_memory_bytes}.")


@dataclass(frozen=True, slots=True)
class BulkState:
    """How far a job is: rows read of ``total_rows`` (None: not known), new texts in them, and texts stored by now."""

    n_rows: int
    total_rows: int | None
    n_new: int
    n_embedded: int

    @property
    def n_done(self) -> int:
        """Rows that are read and not waiting for their text to be embedded."""
        return self.n_rows - (self.n_new - self.n_embedded)


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What a complete run did, and what the folder now holds.

    ``n_texts`` different texts stand in ``n_rows`` rows; ``n_embedded`` of them were embedded by this run. ``n_unused``
    texts of earlier runs are in no row any more. ``n_cut`` texts were longer than the model reads, by up to ``longest``
    tokens. ``n_damaged`` shards were found damaged and redone.
    """

    n_rows: int
    n_texts: int
    n_embedded: int
    n_unused: int
    n_damaged: int
    n_cut: int
    longest: int

    @property
    def n_repeated(self) -> int:
        """Rows whose text stands in a row before."""
        return self.n_rows - self.n_texts
