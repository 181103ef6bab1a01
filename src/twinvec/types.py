"""Array aliases, padded token batches, the runtime protocol, and what an encoder returns beside vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Block", "Coverage", "Ids", "LayerBatch", "Lengths", "Runtime", "TokenBatch", "Vectors"]

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


class Lengths(NamedTuple):
    """Per text: its number of tokens, special tokens included, and whether the model truncates it."""

    n_tokens: NDArray[np.int64]
    is_cut: NDArray[np.bool_]


class Coverage(NamedTuple):
    """Per text: the share of its letters in scripts that the model has words for, and whether it is unknown.

    Of an unknown text, a quarter or more of the letters are in other scripts, of which ``scripts`` has the main one.
    """

    shares: NDArray[np.float64]
    is_unknown: NDArray[np.bool_]
    scripts: list[str | None]


class LayerBatch(NamedTuple):
    """A batch of texts with all states: ``layers`` is ``(layers + 1, batch, tokens, width)``, embedding layer first.

    ``owners`` are the indices of the texts in the input list.
    """

    owners: list[int]
    tokens: TokenBatch
    layers: Vectors


class Block(NamedTuple):
    """Vectors ``(n, width)``, the number of truncated texts, the token count of the longest, and unknown texts.

    ``n_tokens`` is the number of tokens of each full text, ``(n,)``, if the embedder counts them.
    """

    vectors: Array
    n_cut: int
    longest: int
    n_unknown: int = 0
    n_tokens: Ids | None = None
