"""Sentence embeddings: turn texts into vectors, fast and exact, on the CPU you have.

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
    from twinvec.baselines.lexical import fit_lexical
    from twinvec.baselines.use import reduce_use
    from twinvec.baselines.word_vectors import WordSettings, convert_word_vectors
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
    from twinvec.pairs.cross_encoder import CrossEncoder, load_scorer
    from twinvec.pairs.poly_encoder import PolyEncoder
    from twinvec.remote import AsyncClient, Client
    from twinvec.scorer import Ranked, Scorer, rank_texts
    from twinvec.search.demo import run_demo
    from twinvec.search.texts import find_duplicates, find_pairs, search_texts
    from twinvec.training.job import TrainResult, train
    from twinvec.vectors import quantize_vectors, similarity, similarity_pairwise, unit_rows
    from twinvec.wk import WKSettings

__all__ = [
    "AsyncClient",
    "Client",
    "Collection",
    "CrossEncoder",
    "Encoder",
    "Evaluation",
    "Explanation",
    "LayerSettings",
    "Lengths",
    "ModelEmbedder",
    "PairExplanation",
    "PolyEncoder",
    "Ranked",
    "Scorer",
    "SuiteSettings",
    "SystemChoice",
    "TrainResult",
    "TwinvecError",
    "WKSettings",
    "WordSettings",
    "analyze_layers",
    "cluster_texts",
    "compare",
    "convert_word_vectors",
    "embed_file",
    "evaluate",
    "explain",
    "find_duplicates",
    "find_pairs",
    "fit_lexical",
    "index_file",
    "inspect_model",
    "load",
    "load_scorer",
    "measure_speed",
    "quantize_vectors",
    "rank_texts",
    "reduce_use",
    "run_demo",
    "search_texts",
    "similarity",
    "similarity_pairwise",
    "sweep",
    "train",
    "unit_rows",
]

# The module of each public name. Modules are imported at first use, so `twinvec --help` does not load onnxruntime.
_MODULES = {
    name: module
    for module, names in {
        "analysis.layers": ("LayerSettings", "analyze_layers"),
        "analysis.speed": ("measure_speed",),
        "analysis.sweep": ("sweep",),
        "baselines.lexical": ("fit_lexical",),
        "baselines.use": ("reduce_use",),
        "baselines.word_vectors": ("WordSettings", "convert_word_vectors"),
        "bulk.embed_file": ("embed_file",),
        "cluster.texts": ("cluster_texts",),
        "collection": ("Collection",),
        "collection.import_file": ("index_file",),
        "embedder": ("ModelEmbedder", "explain"),
        "encoder": ("Encoder", "Lengths"),
        "engine.inspect": ("inspect_model",),
        "errors": ("TwinvecError",),
        "evaluation.evaluate": ("SuiteSettings", "compare", "evaluate"),
        "evaluation.result_file": ("Evaluation",),
        "evaluation.systems": ("SystemChoice",),
        "explanation": ("Explanation", "PairExplanation"),
        "loading": ("load",),
        "pairs.cross_encoder": ("CrossEncoder", "load_scorer"),
        "pairs.poly_encoder": ("PolyEncoder",),
        "remote": ("AsyncClient", "Client"),
        "scorer": ("Ranked", "Scorer", "rank_texts"),
        "search.demo": ("run_demo",),
        "search.texts": ("find_duplicates", "find_pairs", "search_texts"),
        "training.job": ("TrainResult", "train"),
        "vectors": ("quantize_vectors", "similarity", "similarity_pairwise", "unit_rows"),
        "wk": ("WKSettings",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name == "__version__":
        return import_module("importlib.metadata").version("twinvec")
    if name not in _MODULES:
        raise AttributeError(f"module 'twinvec' has no attribute {name!r}")
    return getattr(import_module(f"twinvec.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
