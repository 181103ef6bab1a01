"""Texts to rows of ids for the engine: prompts, the model's limit, windows over long texts, and the plan of a run."""

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

TEXTS_PER_PLAN = 1024  # tokenized together, while other streams still run the batches of the ones before
OVERLAP = 4  # neighbouring windows share a quarter of their tokens


WHOLE = -1


class Row(NamedTuple):
    """Ids that go through the model as one: a text, or one window of a long text."""

    owner: int  # the text's index among the texts
    ids: list[int]  # special tokens included
    n_tokens: int  # without special tokens: the window's weight
    window: int = WHOLE  # which window of its text this is


@dataclass
class LongTexts:
    """Collects what was cut during a run, so that it is said once."""

    max_tokens: int
    n_cut: int = 0
    longest: int = 0

    def note(self, n_tokens: int) -> None:
        """One more text of ``n_tokens`` was cut."""
        self.n_cut += 1
        self.longest = max(self.longest, n_tokens)

    def warn(self) -> None:
        """Log one warning, if anything was cut."""
        if self.n_cut:
            logger.warning(
                "%d text%s longer than the %d tokens this model reads; only the beginning was used (the longest has "
                "%d tokens). Use long='chunk' to read all of it, 'error' to refuse, 'cut' to accept this in silence.",
                self.n_cut,
                " is" if self.n_cut == 1 else "s are",
                self.max_tokens,
                self.longest,
            )


@dataclass(frozen=True)
class RowMaker:
    """Makes rows of texts under one policy for long ones."""

    words: WordReader
    max_tokens: int
    long: LongPolicy
    cut: LongTexts = field(compare=False)
    n_before: int = 0  # texts of this run that came before these, for messages

    def rows(self, texts: Sequence[str], owners: Sequence[int]) -> list[Row]:
        """The rows of some texts; ``owners`` are their indices. A text without any token has no row."""
        made: list[Row] = []
        for owner, ids in zip(owners, self.words.rows(texts), strict=True):
            made.extend(self._rows_of(owner, ids))
        return made

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
        """Deal with a text beyond the limit, as the policy says."""
        if self.long == "error":
            raise TextTooLongError(
                f"texts[{self.n_before + owner}] has {n_tokens} tokens, but this model reads {self.max_tokens}.",
                hint="Use long='chunk' to read all of it, or long='warn' or 'cut' to use its beginning.",
            )
        self.cut.note(n_tokens)


class HasIds(Protocol):
    """A row of ids, whatever else it holds."""

    @property
    def ids(self) -> list[int]:
        """Special tokens included."""
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
    """Batches of the rows that ``make`` makes of texts and their indices, longest first, as they are needed.

    ``size`` is the count of characters, where the items are not texts.
    """
    order = sorted(range(len(items)), key=lambda i: -size(items[i]))
    for start in range(0, len(order), TEXTS_PER_PLAN):
        owners = order[start : start + TEXTS_PER_PLAN]
        rows = make([items[i] for i in owners], owners)
        lengths = [len(row.ids) for row in rows]
        # A small job is cut into as many batches as there are streams.
        room = min(budget, -(-sum(lengths) // n_streams))
        for indices in plan(lengths, room):
            yield [rows[i] for i in indices]


def join_windows(parts: Sequence[tuple[int, Vectors]]) -> Vectors:
    """The mean of the windows' vectors, weighted by their counts of tokens: ``(width,)``.

    >>> join_windows([(3, np.array([1.0], dtype=np.float32)), (1, np.array([5.0], dtype=np.float32))]).tolist()
    [2.0]
    """
    counts = np.array([count for count, _ in parts], dtype=np.float64)
    vectors = np.stack([vector for _, vector in parts]).astype(np.float64)
    return np.asarray(counts @ vectors / counts.sum(), dtype=np.float32)
