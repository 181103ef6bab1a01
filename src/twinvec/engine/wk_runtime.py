"""SBERT-WK over any runtime: it gives the states of all layers, and these are weighed here, in numpy."""

from __future__ import annotations

from functools import partial

from twinvec.engine.model import build_heads
from twinvec.engine.onnx_runtime import open_session
from twinvec.engine.weights import read_weights
from twinvec.model_folder import WK, ModelFolder
from twinvec.types import Runtime, TokenBatch, Vectors
from twinvec.wk import sentence_vectors

__all__ = ["WKRuntime"]


class WKRuntime:
    """Runs a model by another runtime, and reads all of its layers."""

    def __init__(self, inner: Runtime, folder: ModelFolder, *, states_width: int, trust_pickle: bool = False) -> None:
        assert isinstance(folder.readout, WK)
        self.name = inner.name
        self._inner = inner
        self._settings = folder.readout.settings
        self._heads = None
        if folder.modules[1:]:
            read = partial(read_weights, trust_pickle=trust_pickle)
            self._heads = open_session(build_heads(folder, states_width, read))

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        vectors: Vectors = sentence_vectors(self._inner.layers(batch), batch.pool_mask, self._settings)
        if self._heads is not None:
            vectors = self._heads.run(None, {"states": vectors})[0]
        return vectors

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``."""
        return self._inner.layers(batch)
