"""A static model in training: a table of token vectors, started from what a larger model makes of each token alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.engine.batching import pad
from twinvec.errors import InputError
from twinvec.loading import load
from twinvec.model_folder import ModelFolder
from twinvec.static_saving import fill_static
from twinvec.text import Tokenizer
from twinvec.types import Ids, StoredPrecision, Vectors

__all__ = ["StaticNetwork", "start_table"]

TEXTS_AT_ONCE = 4096
TOKENS_AT_ONCE = 512
RARE = 1e-3  # a token this frequent weighs half as much as one that never occurs (Arora et al. 2017, their a)


class StaticNetwork(nn.Module):  # type: ignore[misc] # torch is not typed here
    """Rows of ids to the mean of their rows in a table, of length 1; special tokens do not count."""

    is_packed = True
    n_positions: int | None = None

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer, table: Vectors) -> None:
        super().__init__()
        self.folder = folder
        self.width = table.shape[1]
        self.table = nn.Parameter(torch.from_numpy(table.copy()))
        self._n_before, self._n_after = len(tokenizer.prefix), len(tokenizer.suffix)

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """Vectors of some texts, ``(texts, width)``; zeros for one without tokens."""
        bodies = [row[self._n_before : len(row) - self._n_after] for row in rows]
        lengths = torch.tensor([0, *(len(body) for body in bodies)])
        ids = torch.from_numpy(np.concatenate(bodies)) if bodies else torch.zeros(0, dtype=torch.int64)
        device = self.table.device
        starts = lengths.cumsum(0)[:-1].to(device)
        return F.normalize(F.embedding_bag(ids.to(device), self.table, starts, mode="mean"), dim=-1)

    def encode(self, rows: Sequence[Ids]) -> Vectors:
        """Vectors of any number of texts, nothing learned. ``(texts, width)``."""
        with torch.inference_mode():
            parts = [
                self(rows[start : start + TEXTS_AT_ONCE]).cpu().numpy() for start in range(0, len(rows), TEXTS_AT_ONCE)
            ]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), dtype=np.float32)

    def train_only(self, used: Ids) -> None:
        """The whole table is trained: it has no other part."""

    def write(self, place: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model into ``place``, an empty folder that exists."""
        table = self.table.detach().cpu().numpy()
        fill_static(place, self.folder.backbone / "tokenizer.json", table, precision=stored)


def start_table(folder: ModelFolder, tokenizer: Tokenizer, width: int, counts: Ids) -> Vectors:
    """The vectors that a model gives to single tokens, in their first ``width`` principal components, weighted.

    ``counts`` says how often each token occurs, ``(n_vocabulary,)``: a token of frequency p gets the weight
    ``RARE / (RARE + p)``, so that a mean is not all function words. Gives ``(n_vocabulary, width)``.
    """
    encoder = load(folder.path, long="cut")
    if width > encoder.engine.width:
        raise InputError(f"static is {width}, but {folder.path} gives vectors of {encoder.engine.width} values only.")
    vectors = np.empty((len(counts), encoder.engine.width), dtype=np.float32)
    for start in range(0, len(counts), TOKENS_AT_ONCE):
        tokens = range(start, min(start + TOKENS_AT_ONCE, len(counts)))
        vectors[start : tokens.stop] = encoder.engine.runtime.vectors(pad([tokenizer.dress([i]) for i in tokens]))
    vectors -= vectors.mean(axis=0)
    values, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    components = vectors @ axes[:, np.argsort(-values, kind="stable")[:width]].astype(np.float32)
    weights = RARE / (RARE + counts / max(counts.sum(), 1))
    return np.ascontiguousarray(components * weights[:, None], dtype=np.float32)
