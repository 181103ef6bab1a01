"""Rows of token ids for the engine: truncation, windows over long texts, and batch planning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from twinvec.choices import LongPolicy
from twinvec.errors import TextTooLongError
from twinvec.model.tokenizer import WordReader, windows
from twinvec.types import Vectors

__all__ = ["WHOLE", "LongTexts", "Row", "RowMaker", "join_windows", "plan_jobs"]

logger = logging.getLogger(__name__)

Plan = Callable[[Sequence[int], int], list[list[int]]]
Item = TypeVar("Item")

TEXTS_PER_PLAN = 1024  # tokenized together, while other streams run earlier batches
OVERLAP = 4  # neighboring windows share a quarter of their tokens
WHOLE = -1  # the row is a full text, not a window


class Row(NamedTuple):
    """One input of the model: a text, or one window of a long text."""

    owner: int  # index of the text
    ids: list[int]  # special tokens included
    n_tokens: int  # without special tokens; the weight of a window
    window: int = WHOLE  # index of the window


@dataclass
class LongTexts:
    """Counts the texts truncated in a run, for a single warning."""

    max_tokens: int
    n_cut: int = 0
    longest: int = 0

    def note(self, n_tokens: int) -> None:
        """Count a truncated text of ``n_tokens``."""
        self.n_cut += 1
        self.longest = max(self.longest, n_tokens)

    def warn(self) -> None:
        """Log one warning if any text was truncated."""
        if self.n_cut:
            logger.warning(
                "%d text%s longer than the %d tokens this model reads; only the beginning was used (the longest has "
                "%d tokens). Use long='chunk' to read all of it, 'error' to fail, 'cut' to silence this warning.",
                self.n_cut,
                " is" if self.n_cut == 1 else "s are",
                self.max_tokens,
                self.longest,
            )


@dataclass(frozen=True)
class RowMaker:
    """Turns texts into rows, with one policy for long texts."""

    words: WordReader
    max_tokens: int
    long: LongPolicy
    cut: LongTexts = field(compare=False)
    n_before: int = 0  # earlier texts of this run, for messages

    def rows(self, texts: Sequence[str], owners: Sequence[int]) -> list[Row]:
        """The rows of some texts; ``owners`` are their indices. A text without tokens has no row."""
        pairs = zip(owners, self.words.rows(texts), strict=True)
        return [row for owner, ids in pairs for row in self._rows_of(owner, ids)]

    def _rows_of(self, owner: int, ids: list[int]) -> list[Row]:
        room = self.max_tokens - self.words.tokenizer.n_special
        if len(ids) > room:
            if self.long == "chunk":
                spans = windows(len(ids), room, overlap=room // OVERLAP)
                return [self._row(owner, ids[span.start : span.stop], window) for window, span in enumerate(spans)]
            self.refuse_or_note(owner, len(ids) + self.words.tokenizer.n_special)
        row = self._row(owner, self.words.tokenizer.cut(ids, room))
        return [row] if row.ids else []

    def _row(self, owner: int, ids: list[int], window: int = WHOLE) -> Row:
        return Row(owner, self.words.tokenizer.add_special_tokens(ids), len(ids), window)

    def refuse_or_note(self, owner: int, n_tokens: int) -> None:
        """Raise TextTooLongError or count a text over the limit, according to the policy."""
        if self.long == "error":
            raise TextTooLongError(
                f"texts[{self.n_before + owner}] has {n_tokens} tokens, but this model reads {self.max_tokens}.",
                hint="Use long='chunk' to read all of it, or long='warn' or 'cut' to use its beginning.",
            )
        self.cut.note(n_tokens)


class HasIds(Protocol):
    """A row with token ids."""

    @property
    def ids(self) -> list[int]:
        """Token ids, special tokens included."""
        ...


AnyRow = TypeVar("AnyRow", bound=HasIds)


def plan_jobs(
    items: Sequence[Item],
    make: Callable[[Sequence[Item], Sequence[int]], list[AnyRow]],
    plan: Plan,
    *,
    budget: int,
    n_streams: int,
    size: Callable[[Any], int] = len,
) -> Iterator[list[AnyRow]]:
    """Yield batches of rows, longest items first; items are tokenized when needed.

    ``make`` returns the rows of some items, given the items and their indices. ``size`` counts characters of an item.
    """
    order = sorted(range(len(items)), key=lambda i: -size(items[i]))
    for start in range(0, len(order), TEXTS_PER_PLAN):
        owners = order[start : start + TEXTS_PER_PLAN]
        rows = make([items[i] for i in owners], owners)
        lengths = [len(row.ids) for row in rows]
        # A small job is split into one batch per stream.
        room = min(budget, -(-sum(lengths) // n_streams))
        for indices in plan(lengths, room):
            yield [rows[i] for i in indices]


def join_windows(parts: Sequence[tuple[int, Vectors]]) -> Vectors:
    """The mean of the window vectors, weighted by token counts: ``(width,)``.

    >>> join_windows([(3, np.array([1.0], dtype=np.float32)), (1, np.array([5.0], dtype=np.float32))]).tolist()
    [2.0]
    """
    counts = np.array([count for count, _ in parts], dtype=np.float64)
    vectors = np.stack([vector for _, vector in parts]).astype(np.float64)
    return np.asarray(counts @ vectors / counts.sum(), dtype=np.float32)
