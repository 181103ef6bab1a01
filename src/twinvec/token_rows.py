"""Rows of token ids for the engine: truncation, windows over long texts, and batch planning."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from twinvec.choices import MODEL_BY_SCRIPT, MULTILINGUAL_MODEL, LongPolicy, UnknownPolicy
from twinvec.errors import TextTooLongError, UnknownScriptError
from twinvec.model.tokenizer import WordReader, check_texts
from twinvec.types import Ids, Vectors

__all__ = [
    "BLOCK_WARNINGS",
    "WHOLE",
    "LongTexts",
    "Plan",
    "Row",
    "RowMaker",
    "TextNotes",
    "UnknownTexts",
    "better_models",
    "join_windows",
    "plan_jobs",
    "windows",
]

logger = logging.getLogger(__name__)

Plan = Callable[[Sequence[int], int], list[list[int]]]
Item = TypeVar("Item")

TEXTS_PER_PLAN = 1024  # tokenized together, while other streams run earlier batches
OVERLAP = 4  # neighboring windows share a quarter of their tokens
BLOCK_WARNINGS = {  # of a job that embeds block by block, by policy
    "long": "Some texts are longer than the %s tokens this model reads; only their beginning is used. They are "
    "counted. Use long='chunk' with a new folder to read them in full, or 'cut' to silence this warning.",
    "unknown": "Some texts are in a script that this model has no words for; their vectors mean little. They are "
    "counted. Use a model that reads it, such as %s, or unknown='ignore' to silence this warning.",
}
WHOLE = -1  # the row is a full text, not a window


class Row(NamedTuple):
    """One input of the model: a text, or one window of a long text."""

    owner: int  # index of the text
    ids: list[int]  # special tokens included
    n_tokens: int  # without special tokens; the weight of a window
    window: int = WHOLE  # index of the window


@dataclass
class LongTexts:
    """Counts the texts truncated in a run, for a single warning.

    ``n_tokens``, if set, is filled with the number of tokens of each full text, special tokens included.
    """

    max_tokens: int
    n_cut: int = 0
    longest: int = 0
    n_tokens: Ids | None = None

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


@dataclass
class UnknownTexts:
    """Counts the texts in scripts that the model has no words for, for a single warning."""

    words: WordReader
    policy: UnknownPolicy
    what: str = "texts"
    scripts: Counter[str] = field(default_factory=Counter)  # texts by script
    n_read: int = 0

    def read(self, texts: Sequence[str], first: int = 0) -> None:
        """Count the unknown texts, or raise UnknownScriptError; messages number the texts from ``first``."""
        self.n_read += len(texts)
        if self.policy == "ignore" or all(map(str.isascii, texts)):  # no need to know the vocabulary's scripts
            return
        for index, text in enumerate(texts, first):
            script = self.words.scripts.coverage(text).script
            if script is not None and self.policy == "error":
                raise UnknownScriptError(
                    f"{self.what}[{index}] is in {script}, a script that this model has no words for.",
                    hint=f"{self._advice([script])}, or unknown='ignore'.",
                )
            if script is not None:
                self.scripts[script] += 1

    @property
    def n(self) -> int:
        """Number of unknown texts."""
        return self.scripts.total()

    def warn(self) -> None:
        """Log one warning if any text is unknown."""
        if self.scripts:
            named = ", ".join(f"{name} ({count:,})" for name, count in self.scripts.most_common())
            logger.warning(
                "%s of %s %s %s in a script that this model has no words for: %s. Results for them mean little. "
                "%s, unknown='error' to fail, or 'ignore' to silence this warning.",
                f"{self.n:,}",
                f"{self.n_read:,}",
                self.what,
                "is" if self.n == 1 else "are",
                named,
                self._advice(self.scripts),
            )

    def _advice(self, scripts: Iterable[str]) -> str:
        named = f", such as {better_models(scripts)}" if self.what == "texts" else ""  # those do not score pairs
        return f"Use a model that reads it{named}"


def better_models(scripts: Iterable[str]) -> str:
    """The models to use for some scripts.

    >>> better_models(["Thai", "Greek"]) == MULTILINGUAL_MODEL
    True
    """
    return " or ".join(dict.fromkeys(MODEL_BY_SCRIPT.get(script, MULTILINGUAL_MODEL) for script in scripts))


@dataclass
class TextNotes:
    """What a run tells about its texts: those that were cut, and those that the model has no words for."""

    cut: LongTexts
    unknown: UnknownTexts
    warns_of_cut: bool

    def checked(self, texts: Iterable[str], first: int = 0) -> list[str]:
        """The texts as a checked list; messages number them from ``first``."""
        checked = check_texts(texts, first)
        self.unknown.read(checked, first)
        return checked

    def warn(self) -> None:
        """Log at most one warning of each kind."""
        if self.warns_of_cut:
            self.cut.warn()
        self.unknown.warn()


def windows(n_tokens: int, size: int, overlap: int) -> list[range]:
    """Ranges of at most ``size`` tokens that cover ``n_tokens``; neighbors share ``overlap`` or more.

    The last window starts earlier instead of being shorter, so each has full context.

    >>> windows(10, size=4, overlap=1)
    [range(0, 4), range(3, 7), range(6, 10)]
    >>> windows(3, size=4, overlap=1)
    [range(0, 3)]
    """
    if n_tokens <= size:
        return [range(n_tokens)]
    starts = [*range(0, n_tokens - size, size - overlap), n_tokens - size]
    return [range(start, start + size) for start in starts]


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
        n_special = self.words.tokenizer.n_special
        room = self.max_tokens - n_special
        if self.cut.n_tokens is not None:
            self.cut.n_tokens[owner] = len(ids) + n_special
        if len(ids) > room:
            if self.long == "chunk":
                spans = windows(len(ids), room, overlap=room // OVERLAP)
                return [self._row(owner, ids[span.start : span.stop], window) for window, span in enumerate(spans)]
            self.refuse_or_note(owner, len(ids) + n_special)
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
        room = budget if n_streams == 1 else min(budget, -(-sum(lengths) // n_streams))
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
