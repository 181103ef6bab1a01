"""The runtime for every other architecture: torch and transformers (extra ``train``).

The backbone runs in torch; the readout runs in the same graph as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.engine.model import build_readout
from twinvec.engine.onnx_runtime import open_session
from twinvec.engine.readout import readout_width
from twinvec.engine.weights import read_weights, weight_files
from twinvec.errors import DeviceError, ModelFolderError, WeightsError
from twinvec.extras import require
from twinvec.model_folder import ModelFolder
from twinvec.types import Device, TokenBatch, Vectors

__all__ = ["TorchRuntime"]


class TorchRuntime:
    """Runs a backbone in torch."""

    name = "torch"

    def __init__(self, folder: ModelFolder, *, device: Device = "cpu", trust_pickle: bool = False) -> None:
        self._torch = require("torch", extra="train", feature="runtime='torch'")
        transformers = require("transformers", extra="train", feature="runtime='torch'")
        if device == "cuda" and not self._torch.cuda.is_available():
            raise DeviceError("torch sees no CUDA device.", hint="Use device='cpu'.")
        if not trust_pickle and any(file.suffix == ".bin" for file in weight_files(folder.backbone)):
            raise WeightsError(
                f"{folder.backbone} holds its weights as a pickle, which can run code when it is loaded.",
                hint="If you trust its origin, load it with trust_pickle=True.",
            )
        try:
            backbone, report = transformers.AutoModel.from_pretrained(
                folder.backbone, local_files_only=True, output_loading_info=True
            )
        except (ValueError, OSError, KeyError) as error:
            raise ModelFolderError(f"transformers cannot load {folder.backbone}: {error!s:.300}") from error
        if backbone.config.is_encoder_decoder:
            backbone = backbone.get_encoder()
        self._check(backbone, report["missing_keys"], folder.backbone)
        self._device = device
        self._backbone: Any = backbone.to(device).float().eval()
        states_width = int(backbone.config.hidden_size)
        self.n_positions: int | None = getattr(backbone.config, "max_position_embeddings", None)
        self.width = readout_width(folder.modules, states_width)
        self.n_vocabulary = int(backbone.get_input_embeddings().weight.shape[0])
        read = partial(read_weights, trust_pickle=trust_pickle)
        self._readout = open_session(build_readout(folder, states_width, read))

    def _check(self, backbone: Any, missing: Iterable[str], source: Path) -> None:  # noqa: ANN401
        """Refuse parameters that were left at a random start, and ones that are not finite."""
        unset = sorted(name for name in missing if "pooler" not in name)  # a head that no readout reads
        if unset:
            raise WeightsError(f"{source} lacks {len(unset)} parameters: {', '.join(unset[:5])}.")
        for name, parameter in backbone.named_parameters():
            if not self._torch.isfinite(parameter).all():
                raise WeightsError(f"{source}: {name} holds NaN or infinite values.")

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        states = self._run(batch).last_hidden_state.cpu().numpy()
        result: Vectors = self._readout.run(None, {"states": states, "pool_mask": batch.pool_mask})[0]
        return result

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``."""
        return np.stack([states.cpu().numpy() for states in self._run(batch).hidden_states])

    def _run(self, batch: TokenBatch) -> Any:  # noqa: ANN401 - transformers' output
        feed = {"input_ids": batch.ids, "attention_mask": batch.mask}
        with self._torch.inference_mode():
            tensors = {name: self._torch.from_numpy(array).to(self._device) for name, array in feed.items()}
            if getattr(self._backbone.config, "type_vocab_size", 0):
                # Given explicitly: a missing one reads an uninitialised buffer in some releases.
                tensors["token_type_ids"] = self._torch.zeros_like(tensors["input_ids"])
            return self._backbone(**tensors, output_hidden_states=True)
