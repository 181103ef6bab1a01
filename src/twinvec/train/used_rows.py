"""An embedding table that holds only the rows that the training texts use.

A row that no text uses has no gradient, and without weight decay AdamW leaves it as it was, to the bit. Leaving those
rows out saves the optimizer most of its work: of BERT's 30,522 rows, 99,890 SNLI pairs use 12,735.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from twinvec.types import Ids

__all__ = ["UsedRows"]


class UsedRows(nn.Module):  # type: ignore[misc] # torch is not typed here
    """Looks up ids of the whole vocabulary in a table of some of its rows."""

    def __init__(self, whole: nn.Embedding, used: Ids) -> None:
        super().__init__()
        self._whole = [whole]  # in a list, so that it is neither trained nor saved
        self.register_buffer("_used", torch.from_numpy(used).to(whole.weight.device), persistent=False)
        self.weight = nn.Parameter(whole.weight.detach()[self._used].clone())
        # An id that was not announced finds no row, and fails loudly.
        places = torch.full((len(whole.weight),), len(used), device=whole.weight.device)
        places[self._used] = torch.arange(len(used), device=whole.weight.device)
        self.register_buffer("_places", places, persistent=False)
        padding = whole.padding_idx
        is_there = padding is not None and int(places[padding]) < len(used)
        self._padding = int(places[padding]) if is_there else None

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of the table, ``(..., width)``; the padding row gets no gradient, as in the whole table."""
        return embedding(self._places[ids], self.weight, padding_idx=self._padding)

    def whole(self) -> nn.Embedding:
        """The whole table, with the rows as they are now."""
        table = self._whole[0]
        with torch.no_grad():
            table.weight[self._used] = self.weight
        return table
