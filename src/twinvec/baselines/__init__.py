"""Other systems to compare models with: word vectors, InferSent, DAN, tf-idf, BM25, the Universal Sentence Encoder.
They can replace a model everywhere.

A folder with ``embedder.json`` is an embedder of one of ``KINDS``. Its module is imported when it is opened.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from twinvec.errors import check_name
from twinvec.model.folder import EMBEDDER_FILE, embedder_kind

if TYPE_CHECKING:
    from twinvec.embedder import Embedder

__all__ = ["KINDS", "open_baseline"]

# kind -> class, called with the folder and the user's name for it
KINDS = {
    "word-vectors": "twinvec.baselines.word_vectors:WordVectors",
    "infersent": "twinvec.baselines.word_networks:InferSentEmbedder",
    "dan": "twinvec.baselines.word_networks:DanEmbedder",
    "tfidf": "twinvec.baselines.lexical:TfidfEmbedder",
    "use": "twinvec.baselines.use:UseEmbedder",
}


def open_baseline(name: str) -> Embedder | None:
    """Open an embedder folder or a file of word vectors; None for anything else, such as a model name."""
    try:
        path = Path(name).expanduser()
        path.stat()
    except (OSError, ValueError, RuntimeError):  # missing, or not a valid file name
        return None
    kind = embedder_kind(path)
    if kind is not None:
        check_name(f"kind in {path / EMBEDDER_FILE}:", kind, KINDS)
        module, _, class_name = KINDS[kind].partition(":")
        embedder: Embedder = getattr(import_module(module), class_name)(path, name)
        return embedder
    from twinvec.baselines.word_files import find_pair, is_vector_text

    if find_pair(path) is None and not is_vector_text(path):
        return None
    from twinvec.baselines.word_vectors import open_word_vectors

    return open_word_vectors(path)
