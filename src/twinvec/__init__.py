"""Sentence-BERT as software people keep: texts to vectors, fast and exact, on the machine you have.

>>> import twinvec
>>> encoder = twinvec.load()
>>> encoder.encode(["A cat sits.", "A feline rests."]).shape
(2, 384)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinvec.collection import Collection
    from twinvec.encoder import Encoder, Lengths
    from twinvec.errors import TwinvecError
    from twinvec.explanation import Explanation, PairExplanation
    from twinvec.loading import load
    from twinvec.training.job import TrainResult, train
    from twinvec.vectors import quantize_vectors, similarity, similarity_pairwise, unit_rows
    from twinvec.wk import WKSettings

__all__ = [
    "Collection",
    "Encoder",
    "Explanation",
    "Lengths",
    "PairExplanation",
    "TrainResult",
    "TwinvecError",
    "WKSettings",
    "load",
    "quantize_vectors",
    "similarity",
    "similarity_pairwise",
    "train",
    "unit_rows",
]

# Where each public name lives. They are imported at first use: `twinvec --help` need not wait for onnxruntime.
_PLACES = {
    "Collection": "collection",
    "Encoder": "encoder",
    "Explanation": "explanation",
    "Lengths": "encoder",
    "PairExplanation": "explanation",
    "TrainResult": "training.job",
    "TwinvecError": "errors",
    "WKSettings": "wk",
    "load": "loading",
    "quantize_vectors": "vectors",
    "similarity": "vectors",
    "similarity_pairwise": "vectors",
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
