"""The network that is trained: a backbone and its readout, one set of weights for every text of a pair or triplet."""

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

from twinvec.engine.batching import plan_batches
from twinvec.engine.readout import readout_width
from twinvec.engine.stored import pack_int8
from twinvec.engine.torch_backbone import quiet
from twinvec.engine.weights import read_weights
from twinvec.files import read_json, write_json
from twinvec.model_folder import WK, ModelFolder, Pooling
from twinvec.model_saving import module_path, write_model
from twinvec.train.backbone import Backbone
from twinvec.train.heads import make_head, write_head
from twinvec.train.pooling import POOLERS
from twinvec.train.used_rows import UsedRows
from twinvec.train.wk import wk_vectors
from twinvec.types import Ids, StoredPrecision, Vectors

__all__ = ["Network"]

ENCODE_TOKENS = 4096  # in a batch, when nothing is learned


class Network(nn.Module):  # type: ignore[misc] # torch is not typed here
    """Rows of ids to vectors."""

    def __init__(self, folder: ModelFolder, *, trust_pickle: bool = False, dropout: float | None = None) -> None:
        super().__init__()
        self.folder = replace(folder, is_sentence_model=True)
        self.backbone = Backbone(folder, trust_pickle=trust_pickle, dropout=dropout)
        self.width = readout_width(folder.modules, self.backbone.width)
        self.heads = nn.ModuleList(make_head(module, trust_pickle=trust_pickle) for module in folder.modules[1:])

    @property
    def is_packed(self) -> bool:
        """Whether texts run without padding."""
        return self.backbone.is_packed

    @property
    def n_positions(self) -> int | None:
        """The most tokens that a text may have, if there is a limit."""
        return self.backbone.n_positions

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """Vectors of some texts, ``(texts, width)``."""
        readout = self.folder.readout
        states, mask = self.backbone(rows) if isinstance(readout, Pooling) else self.backbone.layers(rows)
        with torch.autocast(states.device.type, enabled=False):  # a mean of many tokens needs float32's digits
            states = states.float()
            if isinstance(readout, WK):
                vectors = wk_vectors(states, mask, readout.settings)
            else:
                vectors = torch.cat([POOLERS[mode](states, mask) for mode in readout.modes], dim=-1)
            for head in self.heads:
                vectors = head(vectors)
        return vectors

    def encode(self, rows: Sequence[Ids]) -> Vectors:
        """Vectors of any number of texts as they are used later: no dropout, nothing learned. ``(texts, width)``."""
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        was_training = self.training
        self.eval()
        try:
            with torch.inference_mode(), self.whole_table():
                for batch in plan_batches([len(row) for row in rows], ENCODE_TOKENS):
                    vectors[batch] = self([rows[i] for i in batch]).float().cpu().numpy()
        finally:
            self.train(was_training)
        return vectors

    def train_only(self, used: Ids) -> None:
        """Hold only these rows of the embedding table; ``encode`` and ``save`` still have all of them."""
        table = self.backbone.model.get_input_embeddings()
        if type(table) is nn.Embedding and len(used) < len(table.weight):
            self.backbone.model.set_input_embeddings(UsedRows(table, used))

    @contextmanager
    def whole_table(self) -> Iterator[None]:
        """The network with its whole embedding table, for a moment."""
        model = self.backbone.model
        part = model.get_input_embeddings()
        if not isinstance(part, UsedRows):
            yield
            return
        model.set_input_embeddings(part.whole())
        try:
            yield
        finally:
            model.set_input_embeddings(part)

    def write(self, place: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model into ``place``, an empty folder that exists."""
        with self.whole_table(), quiet(transformers.utils.logging):
            self.backbone.model.save_pretrained(place)
        write_model(self.folder, place)
        # The first config.json, by transformers, told of dropout rates that were set for the training alone.
        config = read_json(place / "config.json")
        config.pop("torch_dtype", None)
        architecture = type(self.backbone.model).__name__
        write_json(place / "config.json", config | {"architectures": [architecture], "dtype": "float32"})
        if stored == "int8":
            weights = read_weights(place)
            (place / "model.safetensors").unlink()
            save_file(pack_int8(weights), place / "model.safetensors", metadata={"format": "pt"})
        for index, head in enumerate(self.heads, start=2):
            write_head(head, place / module_path(index, self.folder.modules[index - 1]))
