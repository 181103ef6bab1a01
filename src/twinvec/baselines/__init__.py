"""Simple systems to compare a model with, usable wherever one is: word vectors, tf-idf, BM25.

A folder with ``embedder.json`` holds an embedder of one of ``KINDS``; its module is imported when it is opened.
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

# Kind of a folder -> its class, called with the folder and the name that the user has given.
KINDS = {
    "word-vectors": "twinvec.baselines.word_vectors:WordVectors",
    "tfidf": "twinvec.baselines.lexical:TfidfEmbedder",
}


def open_baseline(name: str) -> Embedder | None:
    """The embedder in a folder, or of a file of word vectors; None where the name is anything else, as a model's."""
    try:
        path = Path(name).expanduser()
        path.stat()
    except (OSError, ValueError, RuntimeError):  # not there, or a name that no file can have
        return None
    kind = embedder_kind(path)
    if kind is not None:
        check_name(f"kind in {path / EMBEDDER_FILE}:", kind, KINDS)
        module, _, called = KINDS[kind].partition(":")
        opened: Embedder = getattr(import_module(module), called)(path, name)
        return opened
    from twinvec.baselines.word_files import find_pair, is_vector_text

    if find_pair(path) is None and not is_vector_text(path):
        return None
    from twinvec.baselines.word_vectors import open_word_vectors

    return open_word_vectors(path)
