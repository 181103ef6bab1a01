"""Choose the runtime for a model, the settings and this machine."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from twinvec.choices import Precision
from twinvec.engine.batches import Engine, EngineSettings
from twinvec.engine.calibration import Join, measure_ranges
from twinvec.engine.config import is_supported
from twinvec.engine.int8 import Int8Linear, fold_contexts
from twinvec.engine.model import Model, read_model
from twinvec.engine.runtimes import OnnxRuntime, OpenvinoRuntime, WKRuntime, has_bfloat16
from twinvec.engine.torch import TorchRuntime
from twinvec.errors import InputError
from twinvec.model.folder import WK, ModelFolder
from twinvec.model.tokenizer import Tokenizer
from twinvec.types import Runtime, Vectors

__all__ = ["open_engine", "open_graph"]

logger = logging.getLogger(__name__)


def open_engine(
    folder: ModelFolder,
    tokenizer: Tokenizer,
    settings: EngineSettings,
    *,
    trust_pickle: bool = False,
    codes: Vectors | None = None,
) -> Engine:
    """Load a model into the best runtime for the settings and this machine; ``codes`` as in ``read_model``."""
    if codes is None and (settings.runtime == "torch" or not is_supported(folder.config)):
        return _torch_engine(folder, settings, trust_pickle=trust_pickle)
    model = read_model(folder, trust_pickle=trust_pickle, codes=codes)
    backbone = model.backbone
    _check_layers(folder, backbone.n_layers)
    runtime, precision = open_graph(model, tokenizer, settings)
    if isinstance(folder.readout, WK):
        runtime = WKRuntime(runtime, folder, states_width=backbone.width, trust_pickle=trust_pickle)
    return Engine(runtime, precision, model.width, backbone.n_vocabulary, backbone.n_positions)


def _torch_engine(folder: ModelFolder, settings: EngineSettings, *, trust_pickle: bool) -> Engine:
    if settings.precision != "float32" or settings.runtime not in ("auto", "torch"):
        raise InputError(
            f"Models of type {folder.config.get('model_type')!r} run only in torch and float32, not with "
            f"runtime={settings.runtime!r} and precision={settings.precision!r}.",
            hint="Leave both at their defaults.",
        )
    opened = TorchRuntime(folder, device=settings.device, trust_pickle=trust_pickle)
    runtime: Runtime = opened
    if isinstance(folder.readout, WK):
        _check_layers(folder, opened.n_layers)
        runtime = WKRuntime(opened, folder, states_width=opened.states_width, trust_pickle=trust_pickle)
    return Engine(runtime, "float32", opened.width, opened.n_vocabulary, opened.n_positions)


def _check_layers(folder: ModelFolder, n_layers: int | None) -> None:
    """Raise InputError, before anything runs, if SBERT-WK starts after the last layer."""
    if isinstance(folder.readout, WK) and n_layers is not None:
        folder.readout.settings.start(n_layers)


def open_graph(
    model: Model, tokenizer: Tokenizer, settings: EngineSettings, *, join: Join | None = None
) -> tuple[Runtime, Precision]:
    """Choose the runtime for a model's graph and its precision. ``join`` is for models that read pairs."""
    if settings.precision == "int8":
        if settings.runtime == "openvino":
            raise InputError("precision='int8' runs only in onnxruntime.", hint="Leave runtime at its default.")
        ranges = measure_ranges(model, tokenizer, threads=settings.n_streams, join=join)
        folded = replace(model, weights=fold_contexts(model.weights, ranges))
        return OnnxRuntime(folded, linear=partial(Int8Linear, ranges=ranges)), "int8"
    precision = settings.precision
    if precision == "bfloat16" and not has_bfloat16():
        logger.warning("This CPU does not support bfloat16; float32 is used instead.")
        precision = "float32"
    if settings.runtime == "openvino" and settings.device != "cpu":
        raise InputError(f"runtime='openvino' runs only on the CPU, not on {settings.device!r}.")
    wants_openvino = precision == "bfloat16" if settings.runtime == "auto" else settings.runtime == "openvino"
    if wants_openvino:
        return OpenvinoRuntime(model, precision=precision, n_streams=settings.n_streams), precision
    if precision == "bfloat16":
        raise InputError("precision='bfloat16' runs only in openvino.", hint="Leave runtime at its default.")
    return OnnxRuntime(model, device=settings.device), precision
