"""Array aliases, padded token batches, and the runtime protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Ids", "Runtime", "TokenBatch", "Vectors"]

Array: TypeAlias = NDArray[Any]
Vectors: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Token ids of some texts, padded on the right to the longest.

    ``ids``, ``mask`` and ``pool_mask`` are ``(batch, tokens)``. ``mask`` is 1 on real tokens; ``pool_mask``
    is 1 on the tokens that pooling reads (all real tokens, unless the model excludes its prompt).
    ``types``, of the same shape, are for models that read pairs: 0 on the first text, 1 on the second.
    """

    ids: Ids
    mask: Ids
    pool_mask: Ids
    types: Ids | None = None

    def feed(self) -> dict[str, Ids]:
        """The inputs of a graph by name, without ``pool_mask``."""
        feed = {"ids": self.ids, "mask": self.mask}
        return feed if self.types is None else {**feed, "types": self.types}


class Runtime(Protocol):
    """Runs one batch. Thread-safe."""

    name: str

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        ...

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, embedding layer first, ``(layers + 1, batch, tokens, width)``."""
        ...
