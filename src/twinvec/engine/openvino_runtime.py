"""The faster runtime where the CPU has bfloat16 arithmetic: openvino (extra ``fast``).

One compiled model, one stream per core; weights are held once. openvino keeps threads of its own, which do not
survive a fork, so a child process compiles anew at its first batch.
"""

from __future__ import annotations

import os
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np

from twinvec.engine.linear import FloatLinear
from twinvec.engine.model import MakeLinear, Model, Shown
from twinvec.extras import require
from twinvec.types import Precision, TokenBatch, Vectors

__all__ = ["OpenvinoRuntime"]

# openvino's bindings set themselves up at the first arrays they see, and two threads that are first together wait for
# each other for ever. So the first arrays are ours, one thread at a time.
_first_use = Lock()


class OpenvinoRuntime:
    """Runs a model's graph in openvino."""

    name = "openvino"

    def __init__(self, model: Model, *, precision: Precision, n_streams: int, linear: MakeLinear = FloatLinear) -> None:
        self._openvino = require("openvino", extra="fast", feature="runtime='openvino'")
        self._model = model
        self._properties = properties(precision, n_streams)
        self._n_streams = n_streams
        self._linear = linear
        self._requests: dict[tuple[int, Shown], SimpleQueue[Any]] = {}
        one = np.ones((1, 1), dtype=np.int64)
        with _first_use:
            first = self.vectors if model.shown == "vectors" else self.layers
            first(TokenBatch(ids=one - 1, mask=one, pool_mask=one))

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        feed = {"ids": batch.ids, "mask": batch.mask, "pool_mask": batch.pool_mask}
        return self._infer("vectors", feed)

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``. Compiled at first use."""
        return self._infer("layers", {"ids": batch.ids, "mask": batch.mask})

    def _infer(self, shown: Shown, feed: dict[str, Any]) -> Vectors:
        requests = self._ready(shown)
        request = requests.get()
        try:
            return np.array(request.infer(feed)[0], dtype=np.float32)
        finally:
            requests.put(request)

    def _ready(self, shown: Shown) -> SimpleQueue[Any]:
        key = os.getpid(), shown
        if key not in self._requests:  # no lock: two threads may both compile, but none waits after a fork
            compiled = self._compile(shown)
            queue: SimpleQueue[Any] = SimpleQueue()
            for _ in range(self._n_streams):
                queue.put(compiled.create_infer_request())
            self._requests.setdefault(key, queue)
        return self._requests[key]

    def _compile(self, shown: Shown) -> Any:  # noqa: ANN401 - a compiled type without stubs
        core = self._openvino.Core()
        with TemporaryDirectory() as folder:
            path = self._model.graph(shown, self._linear).write(Path(folder))
            return core.compile_model(core.read_model(path), "CPU", self._properties)


def properties(precision: Precision, n_streams: int) -> dict[str, Any]:
    """openvino's settings for a precision."""
    return {
        "NUM_STREAMS": n_streams,
        "INFERENCE_NUM_THREADS": n_streams,
        "INFERENCE_PRECISION_HINT": "f32" if precision == "float32" else "bf16",
    }


def has_bfloat16() -> bool:
    """Whether openvino finds bfloat16 arithmetic in this CPU."""
    openvino = require("openvino", extra="fast", feature="precision='bfloat16'")
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
