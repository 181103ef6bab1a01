"""The core runtime: onnxruntime. One session of one thread, called from as many threads as there are streams.

The session takes the weights as they lie in memory; streams share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from twinvec.engine.graph import Graph, set_place
from twinvec.engine.linear import FloatLinear
from twinvec.engine.mapped_file import MappedFile, check_unchanged, mapped_files
from twinvec.engine.model import MakeLinear, Model, Shown
from twinvec.engine.weights import place_on_disk
from twinvec.errors import DeviceError
from twinvec.types import Device, TokenBatch, Vectors

__all__ = ["OnnxRuntime", "open_session"]

LARGE_BYTES = 1 << 20

PROVIDERS: dict[Device, str] = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class OnnxRuntime:
    """Runs a model's graph in onnxruntime."""

    name = "onnxruntime"

    def __init__(self, model: Model, *, device: Device = "cpu", linear: MakeLinear = FloatLinear) -> None:
        self._model = model
        self._device = device
        self._linear = linear
        self._sessions: dict[Shown, Any] = {model.shown: self._open(model.shown)}

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        check_unchanged(self._model.files)  # the session reads the embeddings from the mapped file
        feed = {"ids": batch.ids, "mask": batch.mask, "pool_mask": batch.pool_mask}
        result: Vectors = self._sessions["vectors"].run(None, feed)[0]
        return result

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``. The graph for it is built at first use."""
        if "layers" not in self._sessions:  # no lock: two threads may both build it, but none waits after a fork
            self._sessions["layers"] = self._open("layers")
        check_unchanged(self._model.files)
        result: Vectors = self._sessions["layers"].run(None, {"ids": batch.ids, "mask": batch.mask})[0]
        return result

    def _open(self, shown: Shown) -> Any:  # noqa: ANN401 - a compiled type without stubs
        return open_session(self._model.graph(shown, self._linear), self._device)


def open_session(graph: Graph, device: Device = "cpu", *, threads: int = 1) -> Any:  # noqa: ANN401
    """A session over a graph and the arrays beside it; with one thread it keeps none of its own."""
    provider = PROVIDERS[device]
    if provider not in onnxruntime.get_available_providers():
        raise DeviceError(
            f"This onnxruntime cannot run on {device!r}.",
            hint="Install onnxruntime-gpu, or use device='cpu'.",
        )
    files = mapped_files(graph.weights.values())
    if _are_in_place(files):
        try:
            session = _session(graph, provider, threads, large=LARGE_BYTES)
        except Exception:  # onnxruntime's own kinds
            if _are_in_place(files):
                raise
        else:
            if _are_in_place(files):
                return session
    return _session(graph, provider, threads, large=None)  # onnxruntime would open another file by that name


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
    """Name weights of ``large`` bytes that lie on the disk as needed by their place, so that only what is used is read.

    That spares a copy of the embedding table, half of a small model. The others are handed over in memory.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    kept: dict[str, Any] = {}
    folders: set[Path] = set()
    for tensor in proto.graph.initializer:
        if tensor.name not in graph.weights:
            continue
        array = graph.weights[tensor.name]
        place = place_on_disk(array) if large is not None and array.nbytes >= large else None
        if place is None:
            kept[tensor.name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            continue
        set_place(tensor, place.file.name, place.offset, array.nbytes)
        folders.add(place.file.parent)
    for folder in folders:  # one, as all weights of a backbone lie in one folder
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    options.add_external_initializers(list(kept), list(kept.values()))
    return proto
