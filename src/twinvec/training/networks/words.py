"""Networks over word vectors: InferSent, a BiLSTM with max pooling, and DAN, a deep averaging network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from twinvec.baselines import open_baseline
from twinvec.baselines.word_networks import BELOW_ALL, DAN, INFERSENT, bigram_rows, write_word_network
from twinvec.baselines.word_vectors import TEXTS_AT_ONCE, WordVectors
from twinvec.choices import StoredPrecision
from twinvec.engine.batches import plan_batches
from twinvec.errors import InputError
from twinvec.training.batches import TokenTable
from twinvec.training.networks.bi_encoder import UsedRows
from twinvec.training.networks.setup import Inputs
from twinvec.training.networks.texts import DEFAULT_MAX_TOKENS, TextSetup
from twinvec.training.processes import NETWORK, Processes, seeded
from twinvec.training.recipe import ModelPart
from twinvec.types import Ids, Vectors

__all__ = ["DanNetwork", "InferSentNetwork", "WordSetup", "WordStart", "read_words"]

TOKENS_PER_BATCH = 4096
DEFAULT_HIDDEN = 512
DEFAULT_BUCKETS = 1 << 16
N_LAYERS = 2
WORD_DROPOUT = 0.3  # of DAN, as in Iyyer et al. (2015)


class WordNetwork(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A network over word vectors: takes rows of words, returns vectors; zeros for a text without any known word.

    ``trains_words`` changes the word vectors too. ``dropout`` is a share of the words, which are left out.
    """

    kind = ""
    is_packed = True

    def __init__(self, words: WordVectors, width: int, *, trains_words: bool, dropout: float) -> None:
        super().__init__()
        self.words, self.width, self.dropout = words, width, dropout
        self.table: nn.Module | None = None
        if trains_words:
            self.table = nn.Embedding.from_pretrained(torch.from_numpy(np.array(words.vectors)), freeze=False)

    def vectors_of(self, rows: Sequence[Ids]) -> Tensor:
        """The vectors of some texts with words, ``(texts, width)``."""
        raise NotImplementedError

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """The vectors of some texts, ``(texts, width)``."""
        device = next(self.parameters()).device
        vectors = torch.zeros(len(rows), self.width, device=device)
        texts = [index for index, row in enumerate(rows) if len(row)]
        if not texts:
            return vectors
        found = self.vectors_of([rows[index] for index in texts]).float()
        return vectors.index_copy(0, torch.tensor(texts, device=device), found)

    def look_up(self, ids: Ids) -> Tensor:
        """The vectors of words, ``(len(ids), word width)``."""
        device = next(self.parameters()).device
        if self.table is None:
            return torch.from_numpy(self.words.vectors[ids]).to(device)
        found: Tensor = self.table(torch.from_numpy(ids).to(device))
        return found

    def kept_words(self, n: int) -> Tensor:
        """Which of ``n`` words to keep, ``(n,)`` of 0 and 1: all, except in training."""
        device = next(self.parameters()).device
        if not self.training or not self.dropout:
            return torch.ones(n, device=device)
        return (torch.rand(n, device=device) >= self.dropout).float()

    def encode(self, rows: Sequence[Ids]) -> Vectors:
        """The vectors of any number of texts, without dropout or gradients, ``(texts, width)``."""
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        was_training = self.training
        self.eval()
        try:
            with torch.inference_mode(), self._whole_table():
                for batch in plan_batches([len(row) for row in rows], TOKENS_PER_BATCH):
                    vectors[batch] = self([rows[i] for i in batch]).cpu().numpy()
        finally:
            self.train(was_training)
        return vectors

    def train_only(self, used: Ids) -> None:
        """Train only the vectors of these words; ``encode`` and ``write`` still use all words."""
        if isinstance(self.table, nn.Embedding) and len(used):
            self.table = UsedRows(self.table, used)

    @contextmanager
    def _whole_table(self) -> Iterator[None]:
        part = self.table
        if isinstance(part, UsedRows):
            self.table = part.whole()
        try:
            yield
        finally:
            self.table = part

    def write(self, path: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model to ``path``, an existing empty folder."""
        with self._whole_table():
            weights = {name: values.cpu().numpy() for name, values in self.state_dict().items()}
        vectors = weights.pop("table.weight", None)
        own = {name.removeprefix("lstm."): array for name, array in weights.items()}
        write_word_network(path, self.kind, self.words, own, width=self.width, vectors=vectors, stored=stored)


class InferSentNetwork(WordNetwork):
    """A BiLSTM with ``hidden`` states in each direction, and their maximum over the text (Conneau et al. 2017)."""

    kind = INFERSENT

    def __init__(self, words: WordVectors, hidden: int, *, trains_words: bool = False, dropout: float = 0.0) -> None:
        super().__init__(words, 2 * hidden, trains_words=trains_words, dropout=dropout)
        self.lstm = nn.LSTM(words.width, hidden, bidirectional=True)

    def vectors_of(self, rows: Sequence[Ids]) -> Tensor:
        """The vectors of some texts with words, ``(texts, width)``; a dropped word has a zero vector."""
        lengths = [len(row) for row in rows]
        states = self.look_up(np.concatenate(rows)) * self.kept_words(sum(lengths))[:, None]
        packed = pack_padded_sequence(pad_sequence(states.split(lengths)), torch.tensor(lengths), enforce_sorted=False)
        padded, _ = pad_packed_sequence(self.lstm(packed)[0], padding_value=BELOW_ALL)
        return padded.amax(dim=0)


class DanNetwork(WordNetwork):
    """Feed-forward layers of width ``hidden`` over the mean of all words and bigrams of a text (Iyyer et al. 2015).

    The vectors of bigrams are learned from zeros; a bigram finds its vector by hashing.
    """

    kind = DAN

    def __init__(
        self,
        words: WordVectors,
        hidden: int,
        *,
        n_buckets: int = DEFAULT_BUCKETS,
        trains_words: bool = True,
        dropout: float = WORD_DROPOUT,
    ) -> None:
        super().__init__(words, hidden, trains_words=trains_words, dropout=dropout)
        self.bigrams = nn.Parameter(torch.zeros(n_buckets, words.width))
        self.layers = nn.ModuleList(nn.Linear(words.width if i == 0 else hidden, hidden) for i in range(N_LAYERS))

    def vectors_of(self, rows: Sequence[Ids]) -> Tensor:
        """The vectors of some texts with words, ``(texts, width)``; dropped words and their bigrams do not count."""
        counts, ids = np.array([len(row) for row in rows]), np.concatenate(rows)
        device = self.bigrams.device
        owners = np.repeat(np.arange(len(rows)), counts)
        left = np.flatnonzero(owners[1:] == owners[:-1])
        is_kept = self.kept_words(len(ids))
        buckets = torch.from_numpy(bigram_rows(ids, counts, len(self.bigrams))).to(device)
        units = torch.cat([self.look_up(ids), nn.functional.embedding(buckets, self.bigrams)])
        weights = torch.cat([is_kept, is_kept[left] * is_kept[left + 1]])
        index = torch.from_numpy(np.concatenate([owners, owners[left]])).to(device)
        sums = units.new_zeros(len(rows), units.shape[1]).index_add(0, index, units * weights[:, None])
        totals = weights.new_zeros(len(rows)).index_add(0, index, weights)
        states = sums / totals.clamp(min=1)[:, None]
        for layer in self.layers:
            states = torch.tanh(layer(states))
        return states


@dataclass(frozen=True)
class WordStart:
    """The word vectors that training starts from, and their folder."""

    words: WordVectors

    @property
    def path(self) -> Path:
        """The folder."""
        return self.words.folder


def read_words(part: ModelPart) -> WordStart:
    """Open the word vectors of a recipe: a folder from ``twinvec words``, or a source that it can convert."""
    words = open_baseline(part.start)
    if not isinstance(words, WordVectors):
        raise InputError(
            f"{part.start} is not a folder or file of word vectors, from which the network {part.network!r} starts.",
            hint="Convert word vectors with twinvec words, or choose another network.",
        )
    return WordStart(words)


class WordSetup(TextSetup):
    """A network over word vectors, with the tasks and dev scores of a bi-encoder."""

    def __init__(self, inputs: Inputs, *, work: Path, processes: Processes) -> None:
        self.inputs, self.work, self.processes = inputs, work, processes
        part, training = inputs.recipe.model, inputs.recipe.training
        self.words: WordVectors = inputs.start.words
        self.max_tokens = part.max_tokens or DEFAULT_MAX_TOKENS
        chosen: dict[str, Any] = {
            "trains_words": part.train_words,
            "dropout": training.dropout,
            "n_buckets": part.buckets,
        }
        options = {name: value for name, value in chosen.items() if value is not None}
        kind: type[InferSentNetwork | DanNetwork] = InferSentNetwork if part.network == INFERSENT else DanNetwork
        with seeded(NETWORK, training.seed):
            self.network: WordNetwork = kind(self.words, part.hidden or DEFAULT_HIDDEN, **options)
        self.tables = [self.tokens(examples) for examples in inputs.data]

    def tokenize(self, texts: Sequence[str]) -> TokenTable:
        """The rows of the known words of all texts, truncated to ``max_tokens``."""
        chunks, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            ids, found = self.words.token_rows(texts[first : first + TEXTS_AT_ONCE])
            position = np.arange(len(ids)) - np.repeat(np.cumsum(found) - found, found)
            chunks.append(ids[position < self.max_tokens])
            counts.append(found)
        lengths = np.concatenate(counts)
        starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, self.max_tokens))])
        return TokenTable(np.concatenate(chunks), starts, int((lengths > self.max_tokens).sum()))
