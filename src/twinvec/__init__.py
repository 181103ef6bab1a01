"""Sentence-BERT as software people keep: texts to vectors, fast and exact, on the machine you have.

>>> import twinvec
>>> encoder = twinvec.load()
>>> encoder.encode(["A cat sits.", "A feline rests."]).shape
(2, 384)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinvec.analysis.layers import LayerSettings, analyze_layers
    from twinvec.analysis.speed import measure_speed
    from twinvec.analysis.sweep import sweep
    from twinvec.collection import Collection
    from twinvec.embedder import ModelEmbedder
    from twinvec.encoder import Encoder, Lengths
    from twinvec.engine.inspect import inspect_model
    from twinvec.errors import TwinvecError
    from twinvec.evaluation.evaluate import SuiteSettings, compare, evaluate
    from twinvec.evaluation.result_file import Evaluation
    from twinvec.evaluation.systems import SystemChoice
    from twinvec.explanation import Explanation, PairExplanation
    from twinvec.loading import load
    from twinvec.vectors import quantize_vectors, similarity, similarity_pairwise, unit_rows
    from twinvec.wk import WKSettings

__all__ = [
    "Collection",
    "Encoder",
    "Evaluation",
    "Explanation",
    "LayerSettings",
    "Lengths",
    "ModelEmbedder",
    "PairExplanation",
    "SuiteSettings",
    "SystemChoice",
    "TwinvecError",
    "WKSettings",
    "analyze_layers",
    "compare",
    "evaluate",
    "inspect_model",
    "load",
    "measure_speed",
    "quantize_vectors",
    "similarity",
    "similarity_pairwise",
    "sweep",
    "unit_rows",
]

# Where each public name lives. They are imported at first use: `twinvec --help` need not wait for onnxruntime.
_PLACES = {
    "Collection": "collection",
    "Encoder": "encoder",
    "Evaluation": "evaluation.result_file",
    "Explanation": "explanation",
    "LayerSettings": "analysis.layers",
    "Lengths": "encoder",
    "ModelEmbedder": "embedder",
    "PairExplanation": "explanation",
    "SuiteSettings": "evaluation.evaluate",
    "SystemChoice": "evaluation.systems",
    "TwinvecError": "errors",
    "WKSettings": "wk",
    "analyze_layers": "analysis.layers",
    "compare": "evaluation.evaluate",
    "evaluate": "evaluation.evaluate",
    "inspect_model": "engine.inspect",
    "load": "loading",
    "measure_speed": "analysis.speed",
    "quantize_vectors": "vectors",
    "similarity": "vectors",
    "similarity_pairwise": "vectors",
    "sweep": "analysis.sweep",
    "unit_rows": "vectors",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name == "__version__":
        return import_module("importlib.metadata").version("twinvec")
    if name not in _PLACES:
        raise AttributeError(f"module 'twinvec' has no attribute {name!r}")
    return getattr(import_module(f"twinvec.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
