"""Texts of unequal length in one row of tokens, so that a linear layer computes no padding.

Only attention needs to know where a text ends: it is given the tokens in a padded grid, and gives them back packed.
With SNLI's batches of 16 pairs the linear layers see 262 tokens on average, padded they would see 428.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["ATTENTION", "Grid", "make_grid", "packed_attention"]

ATTENTION = "twinvec_packed"  # its name in transformers' table


@dataclass(frozen=True, slots=True)
class Grid:
    """Where packed tokens stand in a padded grid of ``(texts, longest)``.

    ``mask`` is ``(texts, longest)``, True on real tokens; ``sources`` is flat, the packed place of every cell (0 for
    padding); ``cells`` is ``(tokens,)``, the cell of every packed token; ``positions`` counts them within their text.
    """

    mask: Tensor
    sources: Tensor
    cells: Tensor
    positions: Tensor

    def spread(self, packed: Tensor) -> Tensor:
        """Packed ``(tokens, width)`` to padded ``(texts, longest, width)``; padding repeats some token."""
        return packed.index_select(0, self.sources).view(*self.mask.shape, packed.shape[-1])

    def pack(self, padded: Tensor) -> Tensor:
        """Padded ``(texts, longest, width)`` to packed ``(tokens, width)``."""
        return padded.reshape(-1, padded.shape[-1]).index_select(0, self.cells)


def make_grid(lengths: Sequence[int], device: torch.device | str = "cpu") -> Grid:
    """The grid of texts with these numbers of tokens.

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
    **_: Any,  # noqa: ANN401 - transformers passes what its other attentions need
) -> tuple[Tensor, None]:
    """Attention of every text to itself. The three are ``(1, heads, tokens, width of a head)``, packed."""
    if sliding_window is not None:
        raise NotImplementedError("packed attention sees whole texts")
    heads, width = query.shape[1], query.shape[3]
    device = query.device.type
    # On a CPU, torch takes five times (texts of 14 tokens) to twice (150) as long in bfloat16, forth and back.
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
