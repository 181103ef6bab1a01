"""The torch backbone: from token ids to the states of all layers, without computing padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from twinvec.engine.batches import pad
from twinvec.engine.torch import load_backbone, longest_input
from twinvec.errors import ModelFolderError
from twinvec.model.folder import ModelFolder
from twinvec.types import Ids

__all__ = ["Backbone"]

ATTENTION = "twinvec_packed"  # its name in transformers' registry


@dataclass(frozen=True, slots=True)
class Grid:
    """The mapping between packed tokens and a padded grid of ``(texts, longest)``.

    ``mask`` is ``(texts, longest)``, True on real tokens; ``sources`` is flat, the packed index of every cell (0 for
    padding); ``cells`` is ``(tokens,)``, the cell of every packed token; ``positions`` counts them within their text.
    """

    mask: Tensor
    sources: Tensor
    cells: Tensor
    positions: Tensor

    def spread(self, packed: Tensor) -> Tensor:
        """Packed ``(tokens, width)`` to padded ``(texts, longest, width)``; padding holds an arbitrary token."""
        return packed.index_select(0, self.sources).view(*self.mask.shape, packed.shape[-1])

    def pack(self, padded: Tensor) -> Tensor:
        """Padded ``(texts, longest, width)`` to packed ``(tokens, width)``."""
        return padded.reshape(-1, padded.shape[-1]).index_select(0, self.cells)


def make_grid(lengths: Sequence[int], device: torch.device | str = "cpu") -> Grid:
    """The grid of texts with these token counts.

    >>> grid = make_grid([2, 1])
    >>> grid.sources.tolist(), grid.cells.tolist(), grid.positions.tolist()
    ([0, 1, 2, 0], [0, 1, 2], [0, 1, 0])
    """
    counts = np.asarray(lengths, dtype=np.int64)
    columns = np.arange(counts.max())
    mask = columns < counts[:, None]
    starts = np.cumsum(counts) - counts
    arrays = (
        mask,
        np.where(mask, starts[:, None] + columns, 0).ravel(),
        np.flatnonzero(mask),
        np.broadcast_to(columns, mask.shape)[mask],
    )
    return Grid(*(torch.from_numpy(array).to(device) for array in arrays))


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    grid: Grid,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: object = None,
    **_: Any,  # noqa: ANN401 - transformers passes arguments of its other attention functions
) -> tuple[Tensor, None]:
    """Self-attention within each text. Query, key and value are packed: ``(1, heads, tokens, width of a head)``."""
    if sliding_window is not None:
        raise NotImplementedError("packed attention does not support sliding windows")
    heads, width = query.shape[1], query.shape[3]
    device = query.device.type
    # On a CPU, forward and backward are 5 (14 tokens per text) to 2 times (150 tokens) slower in bfloat16.
    computed = torch.float32 if device == "cpu" and query.dtype == torch.bfloat16 else query.dtype

    def spread(packed: Tensor) -> Tensor:
        flat = packed[0].transpose(0, 1).reshape(-1, heads * width)
        return grid.spread(flat.to(computed)).unflatten(-1, (heads, width)).transpose(1, 2)

    with torch.autocast(device, enabled=False):
        mixed = scaled_dot_product_attention(
            spread(query),
            spread(key),
            spread(value),
            attn_mask=grid.mask[:, None, None, :],
            dropout_p=dropout if module.training else 0.0,
            scale=scaling,
        )
    packed = grid.pack(mixed.transpose(1, 2).flatten(2)).to(query.dtype)
    return packed.view(1, -1, heads, width), None


PROBE_LENGTHS = 3, 1, 200, 2
CLOSE = 1e-4


class Backbone(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A transformers encoder that takes rows of ids and returns the states of every layer."""

    def __init__(self, folder: ModelFolder, *, trust_pickle: bool = False, dropout: float | None = None) -> None:
        super().__init__()
        model = load_backbone(folder, feature="Training", trust_pickle=trust_pickle, dropout=dropout)
        if model.config.is_encoder_decoder:
            raise ModelFolderError(
                f"{folder.backbone} has a decoder ({model.config.model_type}).",
                hint="Start from an encoder-only model, such as BERT, RoBERTa, MPNet or ModernBERT.",
            )
        self.model: Any = model
        self.width = int(model.config.hidden_size)
        self.n_positions = longest_input(model)
        if getattr(model, "pooler", None) is not None:
            model.pooler.requires_grad_(False)  # not used by any readout
        self._default_attention = model.config._attn_implementation
        self._first_position = self._packed_start()

    @property
    def is_packed(self) -> bool:
        """Whether texts are computed without padding."""
        return self._first_position is not None

    def forward(self, rows: Sequence[Ids], types: Sequence[Ids] | None = None) -> tuple[Tensor, Tensor]:
        """The states of the last layer, ``(texts, longest, width)``, and the token mask, ``(texts, longest)``.

        ``types`` are the token types of each row; 0 by default.
        """
        layers, mask = self._run(rows, types, n_layers=1)
        return layers[0], mask

    def layers(self, rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """The states of all layers, embedding layer first, ``(layers + 1, texts, longest, width)``, and the mask."""
        layers, mask = self._run(rows, None, n_layers=None)
        # Some releases also return the states between the inner layers of ALBERT's groups.
        step = max(1, (len(layers) - 1) // int(getattr(self.model.config, "num_hidden_layers", len(layers))))
        return torch.stack(layers[::step]), mask

    def _run(
        self, rows: Sequence[Ids], types: Sequence[Ids] | None, *, n_layers: int | None
    ) -> tuple[list[Tensor], Tensor]:
        device = next(self.model.parameters()).device
        if self._first_position is None:
            batch = pad(rows)
            ids, mask = torch.from_numpy(batch.ids).to(device), torch.from_numpy(batch.mask).to(device)
            padded = None if types is None else torch.from_numpy(pad(types).ids).to(device)
            return self._states(ids, padded, n_layers, attention_mask=mask), mask
        grid = make_grid([len(row) for row in rows], device)
        ids = torch.from_numpy(np.concatenate(rows).astype(np.int64)).to(device)[None]
        positions = self._positions(ids, grid)[None] + self._first_position
        with self._attention(ATTENTION):
            packed = None if types is None else torch.from_numpy(np.concatenate(types)).to(device)[None]
            layers = self._states(ids, packed, n_layers, position_ids=positions, grid=grid)
        return [grid.spread(states[0]) for states in layers], grid.mask.long()

    def _positions(self, ids: Tensor, grid: Grid) -> Tensor:
        """The positions of all tokens in their texts, ``(tokens,)``, without the offset of the first position.

        If positions start after the padding id (RoBERTa), a literal padding token gets -1 and is not counted.
        """
        if not self._first_position:
            return grid.positions
        is_pad = ids[0] == self._first_position - 1
        before = torch.cumsum(is_pad, dim=0)
        start = torch.arange(len(before), device=ids.device) - grid.positions
        n_skipped = before - torch.nn.functional.pad(before, (1, 0))[start]
        return torch.where(is_pad, -1, grid.positions - n_skipped)

    def _states(self, ids: Tensor, types: Tensor | None, n_layers: int | None, **more: Any) -> list[Tensor]:  # noqa: ANN401
        if getattr(self.model.config, "type_vocab_size", 0):
            # always given: in some releases the default is not zero
            more["token_type_ids"] = torch.zeros_like(ids) if types is None else types
        result = self.model(input_ids=ids, output_hidden_states=n_layers is None, return_dict=True, **more)
        return [result.last_hidden_state] if n_layers else list(result.hidden_states)

    @contextmanager
    def _attention(self, name: str) -> Iterator[None]:
        # Set the attribute that the layers read at each call: the public setter accepts only transformers' own names.
        self.model.config._attn_implementation_internal = name
        try:
            yield
        finally:
            self.model.config._attn_implementation_internal = self._default_attention

    def _packed_start(self) -> int | None:
        """The first position of a text, if packed and padded texts have equal states; None if they differ."""
        try:
            from transformers import AttentionInterface
        except ImportError:  # an old release
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
                for start in (0, int(self.model.config.pad_token_id or 0) + 1):  # the second: RoBERTa and similar
                    if self._agrees(rows, start, expected=expected[mask.bool()]):
                        return start
                return None
        finally:
            self.model.train(was_training)

    def _agrees(self, rows: Sequence[Ids], start: int, *, expected: Tensor) -> bool:
        self._first_position = start
        try:
            states, mask = self(rows)
        except (TypeError, ValueError, IndexError, KeyError, RuntimeError):  # unsupported arguments or windows
            return False
        found = states[mask.bool()]
        return found.shape == expected.shape and bool((found - expected).abs().max() < CLOSE)
