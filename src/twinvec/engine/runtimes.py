"""Runtimes: onnxruntime, openvino, and SBERT-WK on top of any runtime."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
import onnx
import onnxruntime

from twinvec.choices import Device, Precision
from twinvec.engine.graph import Graph, set_location
from twinvec.engine.linear import FloatLinear
from twinvec.engine.model import MakeLinear, Model, Output, build_heads
from twinvec.engine.weights import MappedFile, check_unchanged, disk_location, mapped_files, read_weights
from twinvec.errors import DeviceError
from twinvec.extras import require
from twinvec.model.folder import WK, ModelFolder
from twinvec.types import Runtime, TokenBatch, Vectors
from twinvec.wk import sentence_vectors

__all__ = ["OnnxRuntime", "OpenvinoRuntime", "WKRuntime", "open_session"]

LARGE_BYTES = 1 << 20

PROVIDERS: dict[Device, str] = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class OnnxRuntime:
    """Runs a model's graph in onnxruntime."""

    name = "onnxruntime"

    def __init__(self, model: Model, *, device: Device = "cpu", linear: MakeLinear = FloatLinear) -> None:
        self._model = model
        self._device = device
        self._linear = linear
        self._sessions: dict[Output, Any] = {model.output: self._open(model.output)}

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        check_unchanged(self._model.files)  # the session reads the embeddings from the mapped file
        feed = {**batch.feed(), "pool_mask": batch.pool_mask}
        result: Vectors = self._sessions["vectors"].run(None, feed)[0]
        return result

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``. Builds its graph at first use."""
        if "layers" not in self._sessions:  # no lock, which could hang after a fork: two threads may both build
            self._sessions["layers"] = self._open("layers")
        check_unchanged(self._model.files)
        result: Vectors = self._sessions["layers"].run(None, batch.feed())[0]
        return result

    def _open(self, output: Output) -> Any:  # noqa: ANN401 - a compiled type without stubs
        return open_session(self._model.graph(output, self._linear), self._device)


def open_session(graph: Graph, device: Device = "cpu", *, threads: int = 1) -> Any:  # noqa: ANN401
    """Open an onnxruntime session for a graph; with one thread, it starts no threads."""
    provider = PROVIDERS[device]
    if provider not in onnxruntime.get_available_providers():
        raise DeviceError(
            f"This onnxruntime does not support {device!r}.", hint="Install onnxruntime-gpu, or use device='cpu'."
        )
    files = mapped_files(graph.weights.values())
    if _are_in_place(files):
        try:
            session = _session(graph, provider, threads, large=LARGE_BYTES)
        except Exception:  # onnxruntime's own classes
            if _are_in_place(files):
                raise
        else:
            if _are_in_place(files):
                return session
    return _session(graph, provider, threads, large=None)  # a file was replaced: hand over the mapped weights


def _are_in_place(files: Iterable[MappedFile]) -> bool:
    return all(file.is_at_its_path() for file in files)


def _session(graph: Graph, provider: str, threads: int, *, large: int | None) -> Any:  # noqa: ANN401
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    proto = _give_weights(graph, options, large)
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=[provider])


def _give_weights(graph: Graph, options: Any, large: int | None) -> onnx.ModelProto:  # noqa: ANN401
    """Refer to weights of ``large`` bytes or more by their file location; pass the others in memory.

    That avoids a copy of the embedding table, half of a small model, and reads only the rows in use.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    in_memory: dict[str, Any] = {}
    folders: set[Path] = set()
    for tensor in proto.graph.initializer:
        if tensor.name not in graph.weights:
            continue
        array = graph.weights[tensor.name]
        location = disk_location(array) if large is not None and array.nbytes >= large else None
        if location is None:
            in_memory[tensor.name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            continue
        set_location(tensor, location.file.name, location.offset, array.nbytes)
        folders.add(location.file.parent)
    for folder in folders:  # one, as all weights of a backbone are in one folder
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    options.add_external_initializers(list(in_memory), list(in_memory.values()))
    return proto


# openvino's bindings initialize at their first arrays, and deadlock if two threads do that together. So the constructor
# runs one batch under this lock.
_first_use = Lock()


class OpenvinoRuntime:
    """Runs a model's graph in openvino."""

    name = "openvino"

    def __init__(self, model: Model, *, precision: Precision, n_streams: int, linear: MakeLinear = FloatLinear) -> None:
        self._openvino = require("openvino", extra="fast", feature="runtime='openvino'")
        self._model = model
        self._properties = {
            "NUM_STREAMS": n_streams,
            "INFERENCE_NUM_THREADS": n_streams,
            "INFERENCE_PRECISION_HINT": "f32" if precision == "float32" else "bf16",
        }
        self._n_streams = n_streams
        self._linear = linear
        self._requests: dict[tuple[int, Output], SimpleQueue[Any]] = {}
        one = np.ones((1, 1), dtype=np.int64)
        with _first_use:
            first = self.vectors if model.output == "vectors" else self.layers
            first(TokenBatch(ids=one - 1, mask=one, pool_mask=one, types=one - 1 if model.has_types else None))

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        return self._infer("vectors", {**batch.feed(), "pool_mask": batch.pool_mask})

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``. Compiled at first use."""
        return self._infer("layers", batch.feed())

    def _infer(self, output: Output, feed: dict[str, Any]) -> Vectors:
        requests = self._ready(output)
        request = requests.get()
        try:
            return np.array(request.infer(feed)[0], dtype=np.float32)
        finally:
            requests.put(request)

    def _ready(self, output: Output) -> SimpleQueue[Any]:
        key = os.getpid(), output
        if key not in self._requests:  # no lock, which could hang after a fork: two threads may both compile
            compiled = self._compile(output)
            queue: SimpleQueue[Any] = SimpleQueue()
            for _ in range(self._n_streams):
                queue.put(compiled.create_infer_request())
            self._requests.setdefault(key, queue)
        return self._requests[key]

    def _compile(self, output: Output) -> Any:  # noqa: ANN401 - a compiled type without stubs
        core = self._openvino.Core()
        with TemporaryDirectory() as folder:
            path = self._model.graph(output, self._linear).write(Path(folder))
            return core.compile_model(core.read_model(path), "CPU", self._properties)


def has_bfloat16() -> bool:
    """Whether openvino reports bfloat16 support for this CPU."""
    openvino = require("openvino", extra="fast", feature="precision='bfloat16'")
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class WKRuntime:
    """Computes SBERT-WK vectors from the layers of another runtime."""

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
