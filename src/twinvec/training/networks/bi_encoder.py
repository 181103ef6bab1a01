"""The bi-encoder: a backbone with its readout, one vector per text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn.functional import embedding

from twinvec.choices import StoredPrecision
from twinvec.engine.batches import plan_batches
from twinvec.engine.readout import readout_width
from twinvec.engine.torch import quiet
from twinvec.engine.weights import pack_int8, read_weights
from twinvec.files import read_json, write_json
from twinvec.model.folder import WK, ModelFolder, Pooling
from twinvec.model.save import module_path, write_model
from twinvec.training.backbone import Backbone
from twinvec.training.readout import POOLERS, DenseHead, make_head, wk_vectors, write_head
from twinvec.types import Ids, Vectors

__all__ = ["ENCODE_TOKENS", "Network", "UsedRows", "train_only", "whole_table"]


class UsedRows(nn.Module):  # type: ignore[misc] # torch is not typed here
    """An embedding table that holds only the used rows of a vocabulary, looked up by the original ids."""

    def __init__(self, whole: nn.Embedding, used: Ids) -> None:
        super().__init__()
        self._whole = [whole]  # in a list, so that torch neither trains nor saves it
        self.register_buffer("_used", torch.from_numpy(used).to(whole.weight.device), persistent=False)
        self.weight = nn.Parameter(whole.weight.detach()[self._used].clone())
        # An unknown id gets an index beyond the table, which raises an error.
        indices = torch.full((len(whole.weight),), len(used), device=whole.weight.device)
        indices[self._used] = torch.arange(len(used), device=whole.weight.device)
        self.register_buffer("_indices", indices, persistent=False)
        padding = whole.padding_idx
        is_used = padding is not None and int(indices[padding]) < len(used)
        self._padding = int(indices[padding]) if is_used else None

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of the table, ``(..., width)``; the padding row gets no gradient, as in the full table."""
        return embedding(self._indices[ids], self.weight, padding_idx=self._padding)

    def whole(self) -> nn.Embedding:
        """The full table, with the current rows."""
        table = self._whole[0]
        with torch.no_grad():
            table.weight[self._used] = self.weight
        return table


PADDING = 0  # the id of padding in ``pad``; masked, but looked up


def train_only(backbone: Backbone, used: Ids) -> None:
    """Train only these rows of the embedding table of a backbone."""
    table = backbone.model.get_input_embeddings()
    if not backbone.is_packed:
        used = np.union1d(used, [PADDING])
    if type(table) is nn.Embedding and len(used) < len(table.weight):
        backbone.model.set_input_embeddings(UsedRows(table, used))


@contextmanager
def whole_table(backbone: Backbone) -> Iterator[None]:
    """Use the full embedding table of a backbone inside the block."""
    model = backbone.model
    part = model.get_input_embeddings()
    if not isinstance(part, UsedRows):
        yield
        return
    model.set_input_embeddings(part.whole())
    try:
        yield
    finally:
        model.set_input_embeddings(part)


ENCODE_TOKENS = 4096  # tokens per batch in ``encode``


class Network(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A backbone with its readout: takes rows of ids, returns vectors.

    ``is_packed`` means that texts are computed without padding; ``n_positions`` is the most tokens of a text, or None.
    """

    def __init__(self, folder: ModelFolder, *, trust_pickle: bool = False, dropout: float | None = None) -> None:
        super().__init__()
        self.folder = replace(folder, is_sentence_model=True)
        self.backbone = Backbone(folder, trust_pickle=trust_pickle, dropout=dropout)
        self.is_packed, self.n_positions = self.backbone.is_packed, self.backbone.n_positions
        self.width = readout_width(folder.modules, self.backbone.width)
        self.heads = nn.ModuleList(make_head(module, trust_pickle=trust_pickle) for module in folder.modules[1:])

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """The vectors of some texts, ``(texts, width)``."""
        readout = self.folder.readout
        states, mask = self.backbone(rows) if isinstance(readout, Pooling) else self.backbone.layers(rows)
        with torch.autocast(states.device.type, enabled=False):  # a mean of many tokens needs float32
            states = states.float()
            if isinstance(readout, WK):
                vectors = wk_vectors(states, mask, readout.settings)
            else:
                vectors = torch.cat([POOLERS[mode](states, mask) for mode in readout.modes], dim=-1)
            for head in self.heads:
                vectors = head(vectors)
        return vectors

    def encode(self, rows: Sequence[Ids]) -> Vectors:
        """The vectors of any number of texts, without dropout or gradients, ``(texts, width)``."""
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        was_training = self.training
        self.eval()
        try:
            with torch.inference_mode(), whole_table(self.backbone):
                for batch in plan_batches([len(row) for row in rows], ENCODE_TOKENS):
                    vectors[batch] = self([rows[i] for i in batch]).float().cpu().numpy()
        finally:
            self.train(was_training)
        return vectors

    def set_projection(self, weight: Vectors) -> None:
        """Set the matrix ``(width, width)`` of the first Dense after the pooling."""
        head = next(head for head in self.heads if isinstance(head, DenseHead))
        with torch.no_grad():
            head.linear.weight.copy_(torch.from_numpy(weight))

    def train_only(self, used: Ids) -> None:
        """Train only these rows of the embedding table; ``encode`` and ``write`` still use the full table."""
        train_only(self.backbone, used)

    def write(self, path: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model to ``path``, an existing empty folder."""
        with whole_table(self.backbone), quiet(transformers.utils.logging):
            self.backbone.model.save_pretrained(path)
        write_model(self.folder, path)
        # write_model replaces transformers' config.json, which has dropout rates meant only for training.
        config = read_json(path / "config.json")
        config.pop("torch_dtype", None)
        architecture = type(self.backbone.model).__name__
        write_json(path / "config.json", config | {"architectures": [architecture], "dtype": "float32"})
        if stored == "int8":
            weights = read_weights(path)
            (path / "model.safetensors").unlink()
            save_file(pack_int8(weights), path / "model.safetensors", metadata={"format": "pt"})
        for index, head in enumerate(self.heads, start=2):
            write_head(head, path / module_path(index, self.folder.modules[index - 1]))
