"""Other systems to compare models with: word vectors, InferSent, DAN, tf-idf, BM25, the Universal Sentence Encoder.
They can replace a model everywhere.

A folder with ``embedder.json`` is an embedder of one of ``KINDS`` or a scorer of one of ``SCORERS``. Its module is
imported when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinvec.errors import ModelFolderError, check_name
from twinvec.model.folder import EMBEDDER_FILE, embedder_kind

if TYPE_CHECKING:
    from twinvec.embedder import Embedder
    from twinvec.scorer import RankingScorer

__all__ = ["KINDS", "SCORERS", "open_baseline", "open_scorer"]

# kind -> class, called with the folder and the user's name for it
KINDS = {
    "word-vectors": "twinvec.baselines.word_vectors:WordVectors",
    "infersent": "twinvec.baselines.word_networks:InferSentEmbedder",
    "dan": "twinvec.baselines.word_networks:DanEmbedder",
    "tfidf": "twinvec.baselines.lexical:TfidfEmbedder",
}
SCORERS = {"bm25": "twinvec.baselines.lexical:Bm25Scorer.open"}  # for each of choices.SCORER_KINDS


def open_scorer(path: Path) -> RankingScorer:
    """Open the folder of a scorer."""
    kind = embedder_kind(path)
    check_name(f"kind of scorer in {path / EMBEDDER_FILE}:", kind, SCORERS)
    scorer: RankingScorer = _opener(SCORERS[str(kind)])(path)
    return scorer


def _opener(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    opener: Callable[..., Any] = attrgetter(name)(import_module(module))
    return opener


def open_baseline(name: str) -> Embedder | None:
    """Open an embedder folder, a file of word vectors, or the original files of USE; None for anything else."""
    try:
        path = Path(name).expanduser()
        path.stat()
    except (OSError, ValueError, RuntimeError):  # missing, or not a valid file name
        return None
    kind = embedder_kind(path)
    if kind in SCORERS:
        raise ModelFolderError(f"{path} ({kind}) scores pairs and has no vectors.", hint="Use twinvec.load_scorer.")
    if kind is not None:
        check_name(f"kind in {path / EMBEDDER_FILE}:", kind, KINDS)
        embedder: Embedder = _opener(KINDS[kind])(path, name)
        return embedder
    from twinvec.baselines.converted import use_files
    from twinvec.baselines.word_files import find_pair, is_vector_text

    if use_files(path):
        from twinvec.baselines.use import open_use

        return open_use(path)

    if find_pair(path) is None and not is_vector_text(path):
        return None
    from twinvec.baselines.word_vectors import open_word_vectors

    return open_word_vectors(path)
