"""The static network: a table of token vectors; a text is the mean of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.choices import StoredPrecision
from twinvec.engine.batches import pad
from twinvec.engine.static import fill_static, read_table
from twinvec.errors import InputError
from twinvec.loading import load
from twinvec.model.folder import ModelFolder
from twinvec.model.tokenizer import Tokenizer
from twinvec.types import Ids, Vectors

__all__ = ["StaticNetwork", "start_table", "stored_table"]

TEXTS_PER_BATCH = 4096
TOKENS_PER_BATCH = 512
RARE = 1e-3  # a token of this frequency has half the weight of one that never occurs (a in Arora et al. 2017)


class StaticNetwork(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A table of token vectors; a text is the mean of its tokens, scaled to length 1, without special tokens."""

    is_packed = True
    n_positions: int | None = None

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer, table: Vectors) -> None:
        super().__init__()
        self.folder = folder
        self.width = table.shape[1]
        self.table = nn.Parameter(torch.from_numpy(table.copy()))
        self._n_before, self._n_after = len(tokenizer.prefix), len(tokenizer.suffix)

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """The vectors of some texts, ``(texts, width)``; zeros for a text without tokens."""
        bodies = [row[self._n_before : len(row) - self._n_after] for row in rows]
        lengths = torch.tensor([0, *(len(body) for body in bodies)])
        ids = torch.from_numpy(np.concatenate(bodies)) if bodies else torch.zeros(0, dtype=torch.int64)
        device = self.table.device
        starts = lengths.cumsum(0)[:-1].to(device)
        return F.normalize(F.embedding_bag(ids.to(device), self.table, starts, mode="mean"), dim=-1)

    def encode(self, rows: Sequence[Ids]) -> Vectors:
        """The vectors of any number of texts, without gradients, ``(texts, width)``."""
        with torch.inference_mode():
            starts = range(0, len(rows), TEXTS_PER_BATCH)
            parts = [self(rows[start : start + TEXTS_PER_BATCH]).cpu().numpy() for start in starts]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), dtype=np.float32)

    def train_only(self, used: Ids) -> None:
        """Do nothing: the full table is trained."""

    def write(self, path: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model to ``path``, an existing empty folder."""
        table = self.table.detach().cpu().numpy()
        fill_static(path, self.folder.backbone / "tokenizer.json", table, precision=stored)


def start_table(folder: ModelFolder, tokenizer: Tokenizer, width: int, counts: Ids) -> Vectors:
    """The weighted first ``width`` principal components of a model's token vectors, ``(n_vocabulary, width)``.

    ``counts`` is the number of occurrences of each token, ``(n_vocabulary,)``: a token of frequency p has the weight
    ``RARE / (RARE + p)``, so that function words do not dominate a mean.
    """
    encoder = load(folder.path, long="cut")
    if width > encoder.engine.width:
        raise InputError(f"static is {width}, but the vectors of {folder.path} have the width {encoder.engine.width}.")
    vectors = np.empty((len(counts), encoder.engine.width), dtype=np.float32)
    for start in range(0, len(counts), TOKENS_PER_BATCH):
        tokens = range(start, min(start + TOKENS_PER_BATCH, len(counts)))
        batch = pad([tokenizer.add_special_tokens([i]) for i in tokens])
        vectors[start : tokens.stop] = encoder.engine.runtime.vectors(batch)
    vectors -= vectors.mean(axis=0)
    values, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    components = vectors @ axes[:, np.argsort(-values, kind="stable")[:width]].astype(np.float32)
    weights = RARE / (RARE + counts / max(counts.sum(), 1))
    return np.ascontiguousarray(components * weights[:, None], dtype=np.float32)


def stored_table(folder: ModelFolder, width: int | None, *, trust_pickle: bool = False) -> Vectors:
    """The table of a static model, ``(n_vocabulary, width)``; ``width`` None accepts any."""
    table = read_table(folder.backbone, trust_pickle=trust_pickle)
    if width not in (None, table.shape[1]):
        raise InputError(
            f"static is {width}, but the vectors of {folder.path} have the width {table.shape[1]}.",
            hint=f"Leave static out: the model keeps its width of {table.shape[1]}.",
        )
    return table
