"""Poly-encoders (Humeau et al. 2020, arXiv 1905.01969): a query as several vectors, against one vector per candidate.

Each learned code attends to the token states of the query, which gives it one vector per code. A candidate has one
vector, as in a bi-encoder, so candidates can be embedded in advance. It attends to the vectors of the query, and the
score is its similarity with their weighted mean. Query and candidate use the same weights; the paper has two copies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.embedder import Embedder, ModelEmbedder, embed_texts, readout_words, stable_name
from twinvec.encoder import Encoder
from twinvec.engine.batches import EngineSettings
from twinvec.engine.weights import is_packed, read_weights
from twinvec.errors import InputError, check_at_least
from twinvec.loading import open_encoder
from twinvec.model.identity import file_states, model_files, space_digest, vectors_digest
from twinvec.model.poly_encoder import POLY_FILES, read_poly_encoder
from twinvec.model.save import save_model
from twinvec.model.tokenizer import check_text, load_tokenizer
from twinvec.scorer import Pair, Ranked, checked_pairs, rank_texts
from twinvec.types import Array, Vectors
from twinvec.vectors import check_finite, numeric_rows, unit_rows

__all__ = ["PolyEncoder", "attended_scores", "load_poly_encoder"]

QUERIES_AT_ONCE = 256  # 25 MB of vectors each for 64 codes of width 384
VECTORS_AT_ONCE = 4096


def attended_scores(queries: Vectors, vectors: Vectors, scale: float) -> NDArray[np.float32]:
    """Scores of candidate ``vectors`` ``(n, width)`` for a query's vectors, one per code, ``(codes, width)``: ``(n,)``.

    Candidate y has the similarities ``s_i = y . q_i`` with the vectors of the query and the attention
    ``w = softmax(scale * s)``. Its score, ``y . sum(w_i q_i)``, is therefore the mean of ``s`` weighted with ``w``.

    >>> query = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    >>> attended_scores(query, np.array([[1.0, 0.0], [0.5, 0.5]], dtype=np.float32), 20.0).round(6).tolist()
    [1.0, 0.5]
    """
    similarities = vectors @ queries.T
    weights = np.exp(np.float32(scale) * (similarities - similarities.max(axis=1, keepdims=True)))
    return np.asarray((weights * similarities).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class PolyEncoder:
    """A loaded poly-encoder, from :func:`twinvec.load_scorer`. Threads can share one.

    ``candidates`` embeds the candidates: it is the sentence model of the same folder. Scores are not symmetric: the
    first text of a pair is the query.
    """

    candidates: ModelEmbedder = field(repr=False)
    name: str
    settings: EngineSettings
    n_codes: int
    scale: float
    width: int
    _queries: Encoder = field(repr=False, kw_only=True)

    @cached_property
    def identity(self) -> str:
        """A digest of the model's files and of the settings that affect its scores."""
        return f"poly-encoder-{vectors_digest(self.candidates.content, self.candidates.settings)}"

    @cached_property
    def space(self) -> str:
        """The vector space of the candidates; stored vectors with the same digest can be scored."""
        return space_digest(self.candidates.content, readout_words(self._queries.folder), self.width)

    def shares_vectors(self, embedder: Embedder) -> bool:
        """Whether an embedder's vectors of documents are those of ``candidates``."""
        is_model = isinstance(embedder, ModelEmbedder) and embedder.prompts == self.candidates.prompts
        return is_model and cast(ModelEmbedder, embedder).space == self.space

    def score(self, pairs: Iterable[Pair]) -> NDArray[np.float32]:
        """The scores of pairs (query, text), ``(n,)``. Each different query and text is read once."""
        checked = checked_pairs(pairs)
        scores = np.empty(len(checked), dtype=np.float32)
        if not checked:
            return scores
        texts, text_of = _different([text for _, text in checked])
        queries, query_of = _different([query for query, _ in checked])
        vectors = self._prepared(embed_texts(self.candidates, texts, role="document"))
        order = np.argsort(query_of, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(query_of, minlength=len(queries)))[:-1])
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            several = self.query_vectors(queries[start : start + QUERIES_AT_ONCE])
            for each, rows in zip(several, groups[start:], strict=False):
                scores[rows] = self._scores(each, vectors[text_of[rows]])
        return scores

    def rank(self, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
        """The ``k`` best texts for a query, best first: their rows in the list and their scores."""
        return rank_texts(self, query, texts, k)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """The vectors of queries, one per code, ``(n, codes, width)``."""
        joined = self._queries.encode_query(queries)
        return self._prepared(joined.reshape(len(joined), self.n_codes, -1)[:, :, : self.width])

    def score_vectors(self, query: str, vectors: ArrayLike) -> NDArray[np.float32]:
        """The scores of candidates that ``candidates`` has embedded, ``(n, width)``, for a query: ``(n,)``."""
        stored = numeric_rows(vectors, "vectors")
        if stored.shape[1] != self.width:
            raise InputError(
                f"The vectors have width {stored.shape[1]}, but {self.name} has the width {self.width}.",
                hint="Embed the candidates with the same model.",
            )
        several = self.query_vectors([check_text(query, "query")])[0]
        scores = np.empty(len(stored), dtype=np.float32)
        for start in range(0, len(stored), VECTORS_AT_ONCE):
            part = slice(start, start + VECTORS_AT_ONCE)
            block = np.asarray(stored[part], dtype=np.float32)
            check_finite(block, "vectors", start=start)
            scores[part] = self._scores(several, self._prepared(block))
        return scores

    def rank_vectors(self, query: str, vectors: ArrayLike, k: int | None = None) -> Ranked:
        """The ``k`` best of candidates that ``candidates`` has embedded, ``(n, width)``: their rows and scores.

        Exact, in bounded memory, also for a memory-mapped array of millions; equal scores keep their order.
        """
        check_at_least(1, k=k)
        scores = self.score_vectors(query, vectors)
        if not len(scores):
            raise InputError("There are no vectors to rank.", hint="Pass an array with at least one row.")
        rows = np.arange(len(scores))
        if k is not None and k < len(scores):
            rows = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        rows = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return Ranked(rows, scores[rows])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the model to a new folder. ``twinvec.load`` and sentence-transformers load its candidate side."""
        source = self._queries.folder
        weights = read_weights(source.backbone) if is_packed(source.backbone) else None
        save_model(source, Path(folder), weights=weights, copied=POLY_FILES)

    def _prepared(self, vectors: Vectors) -> Vectors:
        """Vectors whose dot product is the similarity."""
        return unit_rows(vectors) if self._queries.folder.similarity == "cosine" else vectors

    def _scores(self, queries: Vectors, vectors: Vectors) -> NDArray[np.float32]:
        if not self.settings.deterministic:
            return attended_scores(queries, vectors, self.scale)
        # The bits of a matrix product depend on its shape.
        return np.concatenate([attended_scores(queries, row[None], self.scale) for row in vectors])


def _different(texts: list[str]) -> tuple[list[str], Array]:
    """The different texts, and for each text its row in them."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(rows), np.array([rows[text] for text in texts], dtype=np.int64)


def load_poly_encoder(path: Path, settings: EngineSettings, *, trust_pickle: bool = False) -> PolyEncoder:
    """Load a poly-encoder from its folder; see :func:`twinvec.load_scorer`."""
    as_opened = file_states(model_files(path))
    poly = read_poly_encoder(path)
    folder = replace(poly.folder, as_opened=as_opened)
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    queries = open_encoder(folder, tokenizer, settings, trust_pickle=trust_pickle, codes=poly.codes)
    n_codes = len(poly.codes)
    return PolyEncoder(
        candidates=ModelEmbedder(path, {**asdict(settings), "trust_pickle": trust_pickle}).find(),
        name=stable_name(path),
        settings=settings,
        n_codes=n_codes,
        scale=poly.scale,
        width=folder.truncate_dim or queries.engine.width // n_codes,
        _queries=queries,
    )
