"""The runtime for every other architecture: torch and transformers (extra ``train``).

The backbone runs in torch; the readout runs in the same graph as everywhere else.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from twinvec.engine.mapped_file import MappedFile, check_unchanged
from twinvec.engine.model import build_readout
from twinvec.engine.onnx_runtime import open_session
from twinvec.engine.readout import readout_width
from twinvec.engine.torch_backbone import load_backbone, longest_input
from twinvec.engine.weights import read_weights, weight_files
from twinvec.errors import DeviceError
from twinvec.extras import require
from twinvec.model_folder import ModelFolder, Pooling
from twinvec.types import Device, TokenBatch, Vectors

__all__ = ["TorchRuntime"]


class TorchRuntime:
    """Runs a backbone in torch."""

    name = "torch"

    def __init__(self, folder: ModelFolder, *, device: Device = "cpu", trust_pickle: bool = False) -> None:
        self._torch = require("torch", extra="train", feature="runtime='torch'")
        if device == "cuda" and not self._torch.cuda.is_available():
            raise DeviceError("torch sees no CUDA device.", hint="Use device='cpu'.")
        # Opened before transformers maps the same files, for the life of the model.
        files = [file for file in weight_files(folder.backbone) if file.is_file() and file.stat().st_size]
        self._files = [MappedFile.opened(file) for file in files]
        backbone = load_backbone(folder, feature="runtime='torch'", trust_pickle=trust_pickle)
        if backbone.config.is_encoder_decoder:
            backbone = backbone.get_encoder()
        self._device = device
        self._backbone: Any = backbone.to(device).eval()
        states_width = int(backbone.config.hidden_size)
        self.n_positions = longest_input(backbone)
        self.width = readout_width(folder.modules, states_width)
        self.n_vocabulary = int(backbone.get_input_embeddings().weight.shape[0])
        self.states_width = states_width
        self.n_layers: int | None = getattr(backbone.config, "num_hidden_layers", None)
        if isinstance(folder.readout, Pooling):
            read = partial(read_weights, trust_pickle=trust_pickle)
            self._readout = open_session(build_readout(folder, states_width, read))

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        states = self._run(batch).last_hidden_state.cpu().numpy()
        result: Vectors = self._readout.run(None, {"states": states, "pool_mask": batch.pool_mask})[0]
        return result

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``."""
        shown = self._run(batch).hidden_states
        # Some releases also show the states between the inner layers of ALBERT's groups.
        step = max(1, (len(shown) - 1) // (self.n_layers or len(shown)))
        return np.stack([states.cpu().numpy() for states in shown[::step]])

    def _run(self, batch: TokenBatch) -> Any:  # noqa: ANN401 - transformers' output
        check_unchanged(self._files)
        feed = {"input_ids": batch.ids, "attention_mask": batch.mask}
        with self._torch.inference_mode():
            tensors = {name: self._torch.from_numpy(array).to(self._device) for name, array in feed.items()}
            if getattr(self._backbone.config, "type_vocab_size", 0):
                # Given explicitly: a missing one reads an uninitialised buffer in some releases.
                tensors["token_type_ids"] = self._torch.zeros_like(tensors["input_ids"])
            return self._backbone(**tensors, output_hidden_states=True, return_dict=True)
