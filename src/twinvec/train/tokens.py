"""The token ids of all different texts of a data set, made once, held in one flat array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinvec.text import Tokenizer
from twinvec.types import Ids

__all__ = ["TokenTable", "tokenize"]

AT_ONCE = 10_000  # texts tokenized at a time


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Ids of ``n`` texts: ``ids`` holds them one after the other, ``starts`` is ``(n + 1,)``."""

    ids: NDArray[np.int32]
    starts: Ids
    n_cut: int = 0

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ids:
        """How many tokens each text has, ``(n,)``."""
        return np.diff(self.starts)

    def rows(self, places: Sequence[int] | Ids) -> list[Ids]:
        """The ids of some texts."""
        return [self.ids[self.starts[i] : self.starts[i + 1]].astype(np.int64) for i in places]


def tokenize(texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> TokenTable:
    """The ids of all texts with their special tokens, cut to ``max_tokens``."""
    room = max_tokens - tokenizer.n_special
    chunks, lengths, n_cut = [], [], 0
    for start in range(0, len(texts), AT_ONCE):
        rows = tokenizer.ids(texts[start : start + AT_ONCE])
        n_cut += sum(len(row) > room for row in rows)
        dressed = [tokenizer.dress(tokenizer.cut(row, room) if len(row) > room else row) for row in rows]
        lengths += [len(row) for row in dressed]
        chunks.append(np.fromiter((i for row in dressed for i in row), dtype=np.int32))
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ids = np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int32)
    return TokenTable(ids, starts, n_cut)
