"""Sentence-BERT as software people keep: texts to vectors, fast and exact, on the machine you have.

>>> import twinvec
>>> encoder = twinvec.load("all-MiniLM-L6-v2")  # doctest: +SKIP
>>> encoder.encode(["A cat sits.", "A feline rests."]).shape  # doctest: +SKIP
(2, 384)
"""

from importlib.metadata import version as _version

from twinvec.encoder import Encoder, Lengths
from twinvec.errors import TwinvecError
from twinvec.loading import load
from twinvec.vectors import quantize_vectors, similarity, similarity_pairwise, unit_rows

__all__ = [
    "Encoder",
    "Lengths",
    "TwinvecError",
    "load",
    "quantize_vectors",
    "similarity",
    "similarity_pairwise",
    "unit_rows",
]

__version__ = _version("twinvec")
