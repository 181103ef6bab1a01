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
    from twinvec.baselines.use import reduce_use
    from twinvec.bulk.embed_file import embed_file
    from twinvec.cluster.texts import cluster_texts
    from twinvec.collection import Collection
    from twinvec.collection.import_file import index_file
    from twinvec.embedder import ModelEmbedder, explain
    from twinvec.encoder import Encoder, Lengths
    from twinvec.engine.inspect import inspect_model
    from twinvec.errors import TwinvecError
    from twinvec.evaluation.evaluate import SuiteSettings, compare, evaluate
    from twinvec.evaluation.result_file import Evaluation
    from twinvec.evaluation.systems import SystemChoice
    from twinvec.explanation import Explanation, PairExplanation
    from twinvec.loading import load
    from twinvec.search.demo import run_demo
    from twinvec.search.texts import find_duplicates, find_pairs, search_texts
    from twinvec.training.job import TrainResult, train
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
    "TrainResult",
    "TwinvecError",
    "WKSettings",
    "analyze_layers",
    "cluster_texts",
    "compare",
    "embed_file",
    "evaluate",
    "explain",
    "find_duplicates",
    "find_pairs",
    "index_file",
    "inspect_model",
    "load",
    "measure_speed",
    "quantize_vectors",
    "reduce_use",
    "run_demo",
    "search_texts",
    "similarity",
    "similarity_pairwise",
    "sweep",
    "train",
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
    "TrainResult": "training.job",
    "TwinvecError": "errors",
    "WKSettings": "wk",
    "cluster_texts": "cluster.texts",
    "embed_file": "bulk.embed_file",
    "explain": "embedder",
    "find_duplicates": "search.texts",
    "find_pairs": "search.texts",
    "index_file": "collection.import_file",
    "analyze_layers": "analysis.layers",
    "compare": "evaluation.evaluate",
    "evaluate": "evaluation.evaluate",
    "inspect_model": "engine.inspect",
    "load": "loading",
    "measure_speed": "analysis.speed",
    "quantize_vectors": "vectors",
    "reduce_use": "baselines.use",
    "run_demo": "search.demo",
    "search_texts": "search.texts",
    "similarity": "vectors",
    "similarity_pairwise": "vectors",
    "sweep": "analysis.sweep",
    "train": "training.job",
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
