"""Token ids to the states of all layers, in torch, over any transformers encoder.

Where the architecture allows it, texts run packed; whether it does is not guessed from its name but tried: both ways
must give the same states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from twinvec.engine.batching import pad
from twinvec.engine.torch_backbone import load_backbone, longest_input
from twinvec.errors import ModelFolderError
from twinvec.model_folder import ModelFolder
from twinvec.train.packing import ATTENTION, Grid, make_grid, packed_attention
from twinvec.types import Ids

__all__ = ["Backbone"]

PROBE_LENGTHS = 3, 1, 200, 2
CLOSE = 1e-4


class Backbone(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A transformers encoder that takes rows of ids and gives the states of every layer."""

    def __init__(self, folder: ModelFolder, *, trust_pickle: bool = False, dropout: float | None = None) -> None:
        super().__init__()
        model = load_backbone(folder, feature="Training", trust_pickle=trust_pickle, dropout=dropout)
        if model.config.is_encoder_decoder:
            raise ModelFolderError(
                f"{folder.backbone} is an encoder with a decoder ({model.config.model_type}).",
                hint="Train from a model that is an encoder alone, such as BERT, RoBERTa, MPNet or ModernBERT.",
            )
        self.model: Any = model
        self.width = int(model.config.hidden_size)
        self.n_positions = longest_input(model)
        if getattr(model, "pooler", None) is not None:
            model.pooler.requires_grad_(False)  # a head that no readout reads
        self._usual_attention = model.config._attn_implementation
        self._first_position = self._packed_start()

    @property
    def is_packed(self) -> bool:
        """Whether texts run without padding."""
        return self._first_position is not None

    def forward(self, rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """States of the last layer, ``(texts, longest, width)``, and the mask of real tokens, ``(texts, longest)``."""
        layers, mask = self._run(rows, n_layers=1)
        return layers[0], mask

    def layers(self, rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """States of all layers, embedding layer first, ``(layers + 1, texts, longest, width)``, and the mask."""
        layers, mask = self._run(rows, n_layers=None)
        # Some releases also show the states between the inner layers of ALBERT's groups.
        step = max(1, (len(layers) - 1) // int(getattr(self.model.config, "num_hidden_layers", len(layers))))
        return torch.stack(layers[::step]), mask

    def _run(self, rows: Sequence[Ids], *, n_layers: int | None) -> tuple[list[Tensor], Tensor]:
        device = next(self.model.parameters()).device
        if self._first_position is None:
            batch = pad(rows)
            ids, mask = torch.from_numpy(batch.ids).to(device), torch.from_numpy(batch.mask).to(device)
            return self._states(ids, n_layers, attention_mask=mask), mask
        grid = make_grid([len(row) for row in rows], device)
        ids = torch.from_numpy(np.concatenate(rows).astype(np.int64)).to(device)[None]
        positions = self._numbers(ids, grid)[None] + self._first_position
        with self._attention(ATTENTION):
            layers = self._states(ids, n_layers, position_ids=positions, grid=grid)
        return [grid.spread(states[0]) for states in layers], grid.mask.long()

    def _numbers(self, ids: Tensor, grid: Grid) -> Tensor:
        """The places of all tokens in their texts, ``(tokens,)``.

        Where they are counted from behind padding's row, a literal padding token has that row, and is not counted.
        """
        if not self._first_position:
            return grid.positions
        is_pad = ids[0] == self._first_position - 1
        before = torch.cumsum(is_pad, dim=0)
        start = torch.arange(len(before), device=ids.device) - grid.positions
        n_skipped = before - torch.nn.functional.pad(before, (1, 0))[start]
        return torch.where(is_pad, -1, grid.positions - n_skipped)

    def _states(self, ids: Tensor, n_layers: int | None, **more: Any) -> list[Tensor]:  # noqa: ANN401
        if getattr(self.model.config, "type_vocab_size", 0):
            more["token_type_ids"] = torch.zeros_like(ids)  # in some releases a missing one is not zero
        result = self.model(input_ids=ids, output_hidden_states=n_layers is None, return_dict=True, **more)
        return [result.last_hidden_state] if n_layers else list(result.hidden_states)

    @contextmanager
    def _attention(self, name: str) -> Iterator[None]:
        # By the attribute that the layers read, at each call: the setter would check the name against its own list.
        self.model.config._attn_implementation_internal = name
        try:
            yield
        finally:
            self.model.config._attn_implementation_internal = self._usual_attention

    def _packed_start(self) -> int | None:
        """The number of a text's first position if packed texts get the states of padded ones, else None."""
        try:
            from transformers import AttentionInterface
        except ImportError:  # an older release
            return None
        AttentionInterface.register(ATTENTION, packed_attention)
        longest = min(self.n_positions or 512, 512)
        rows = [np.arange(min(length, longest)) % 6 + 5 for length in PROBE_LENGTHS]
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                self._first_position = None
                expected, mask = self(rows)
                for start in (0, int(self.model.config.pad_token_id or 0) + 1):  # RoBERTa's kin count from there
                    if self._agrees(rows, start, expected=expected[mask.bool()]):
                        return start
                return None
        finally:
            self.model.train(was_training)

    def _agrees(self, rows: Sequence[Ids], start: int, *, expected: Tensor) -> bool:
        self._first_position = start
        try:
            states, mask = self(rows)
        except (
            TypeError,
            ValueError,
            IndexError,
            KeyError,
            RuntimeError,
        ):  # it takes no such arguments, or has windows
            return False
        found = states[mask.bool()]
        return found.shape == expected.shape and bool((found - expected).abs().max() < CLOSE)
