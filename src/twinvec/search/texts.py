"""Similar texts: the most similar pairs, near-duplicates, and the best texts for a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from twinvec.choices import CANDIDATES, DEFAULT_MODEL, MOST_ALL_PAIRS, PAIR_METHODS, Keep, PairMethod
from twinvec.embedder import Embedder, ModelEmbedder, ModelLike, as_embedder, embed_texts
from twinvec.errors import InputError, UnknownNameError, check_at_least
from twinvec.explanation import WordShare
from twinvec.model.tokenizer import check_text, check_texts
from twinvec.pairs.cross_encoder import ScorerLike, as_scorer
from twinvec.pairs.poly_encoder import PolyEncoder
from twinvec.scorer import rank_texts
from twinvec.search.approximate import (
    approximate_duplicates,
    approximate_pairs,
    build_index,
    measure_recall,
    sample_rows,
)
from twinvec.search.exact import search
from twinvec.search.index import Index
from twinvec.search.neighbors import Duplicates, duplicate_rows, neighbor_pairs, neighbors, with_equal_texts
from twinvec.search.pairs import Pairs, most_similar_pairs
from twinvec.types import Vectors

__all__ = ["explain_hits", "find_duplicates", "find_pairs", "listed_texts", "pair_index", "search_texts"]

Tell = Callable[[str], None]

PER_TEXT = 10  # neighbors per text that an index returns
N_SAMPLE = 200  # queries used to measure the recall of an index


class TextHit(NamedTuple):
    """A search result: its row in the list, counted from 0, the text, and its score."""

    row: int
    text: str
    score: float


def find_pairs(
    texts: Iterable[str],
    k: int = 20,
    *,
    model: ModelLike | Embedder = DEFAULT_MODEL,
    threshold: float | None = None,
    per_text: int | None = None,
    method: PairMethod = "auto",
    max_memory: int | None = None,
    tell: Tell | None = None,
) -> Pairs:
    """The most similar pairs of texts by cosine, best first: their rows ``left`` and ``right``, and ``scores``.

    Args:
        k: The number of pairs.
        threshold: The lowest cosine of a pair.
        per_text: Pair each text with this many of its nearest texts, instead of returning the ``k`` best pairs.
        method: exact compares all pairs; index compares the neighbors that an index finds (extra: search); auto is
            exact up to 200,000 texts.
        max_memory: The memory limit of an index, in bytes.
        tell: Called with lines about the index and its recall.

    >>> texts = ["A cat sits.", "Rain falls.", "A cat is sitting."]
    >>> pairs = find_pairs(texts, 1)
    >>> texts[pairs.left[0]], texts[pairs.right[0]]
    ('A cat sits.', 'A cat is sitting.')
    """
    vectors = embed_texts(as_embedder(model), listed_texts(texts))
    index = pair_index(vectors, method, max_memory=max_memory, tell=tell)
    if index is not None:
        n_pairs = k if per_text is None else None
        return approximate_pairs(vectors, n_pairs, threshold=threshold, per_text=per_text or PER_TEXT, index=index)
    if per_text is None:
        return most_similar_pairs(vectors, k, threshold=threshold)
    return neighbor_pairs(neighbors(vectors, per_text), threshold=threshold)


def find_duplicates(
    texts: Iterable[str],
    threshold: float = 0.95,
    *,
    model: ModelLike | Embedder = DEFAULT_MODEL,
    keep: Keep = "first",
    method: PairMethod = "auto",
    max_memory: int | None = None,
    tell: Tell | None = None,
) -> Duplicates:
    """Find the texts to keep, and those to remove because their cosine with a kept text is at least ``threshold``.

    Rows are counted from 0; ``repeated`` gives for each of ``removed`` the kept row that it repeats. No two kept texts
    reach the threshold; with an index, a few may. ``keep`` prefers the first or the longest of similar texts;
    ``method``, ``max_memory`` and ``tell`` are as in :func:`find_pairs`.

    >>> found = find_duplicates(["A cat sits.", "Rain falls.", "a cat sits"], 0.9)
    >>> found.kept.tolist(), found.removed.tolist(), found.repeated.tolist()
    ([0, 1], [2], [0])
    """
    listed = listed_texts(texts)
    different = list(dict.fromkeys(listed))
    vectors = embed_texts(as_embedder(model), different)
    index = pair_index(vectors, method, max_memory=max_memory, tell=tell)
    lengths = [len(text) for text in different]
    if index is None:
        found = duplicate_rows(vectors, threshold, keep=keep, lengths=lengths)
    else:
        found = approximate_duplicates(vectors, threshold, keep=keep, lengths=lengths, index=index)
    return with_equal_texts(listed, different, found)


def search_texts(
    query: str,
    texts: Iterable[str],
    k: int = 10,
    *,
    model: ModelLike | Embedder = DEFAULT_MODEL,
    rerank: ScorerLike | None = None,
    candidates: int = CANDIDATES,
) -> list[TextHit]:
    """The ``k`` best texts for a query, best first, by the model's own similarity; exact search.

    ``rerank`` (a scorer, the folder or name of a cross- or poly-encoder, or a function of a query and texts) re-ranks
    the best ``candidates``; the scores are then its own.

    >>> search_texts("a kitten", ["Rain falls.", "A young cat sits."], 1)[0].text
    'A young cat sits.'
    """
    check_text(query, "query")
    listed, embedder = listed_texts(texts), as_embedder(model)
    check_at_least(1, k=k, candidates=candidates)
    scorer = None if rerank is None else as_scorer(rerank)
    queries, stored = embed_texts(embedder, [query], role="query"), embed_texts(embedder, listed, role="document")
    depth = k if scorer is None else max(k, candidates)
    found = search(queries, stored, k=depth, similarity=embedder.similarity)
    ids, scores = found.ids[0], found.scores[0]
    if scorer is not None and len(ids):
        if isinstance(scorer, PolyEncoder) and scorer.shares_vectors(embedder):
            ranked = scorer.rank_vectors(query, stored[ids], k)  # its candidates are embedded already
        else:
            ranked = rank_texts(scorer, query, [listed[row] for row in ids.tolist()], k)
        ids, scores = ids[ranked.rows], ranked.scores
    rows = zip(ids.tolist(), scores.tolist(), strict=True)
    return [TextHit(row, listed[row], score) for row, score in rows]


def explain_hits(
    query: str, texts: Iterable[str], *, model: ModelLike | Embedder = DEFAULT_MODEL
) -> list[tuple[WordShare, ...]]:
    """For each text found for a query, its words with their shares of the cosine; see ``Encoder.explain_match``.

    Exact for the models of :func:`twinvec.explain`; others raise InputError.

    >>> words = explain_hits("a kitten", ["A young cat sits."])[0]
    >>> max(words, key=lambda word: word.share)[:2]  # cat
    (8, 11)
    """
    embedder = as_embedder(model)
    if not isinstance(embedder, ModelEmbedder):
        raise InputError(
            f"{embedder.name} is not a sentence model, so its hits cannot be explained.",
            hint="Pass the name or folder of a sentence model.",
        )
    return [embedder.encoder.explain_match(query, text) for text in listed_texts(texts)]


def listed_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a checked list."""
    if isinstance(texts, str):
        raise InputError("texts must be a list of texts, not a single string.", hint="Put the text in a list.")
    return check_texts(texts)


def pair_index(vectors: Vectors, method: PairMethod, *, max_memory: int | None, tell: Tell | None) -> Index | None:
    """Build the index for finding pairs of ``vectors`` ``(n, width)``; None if all pairs are to be compared.

    ``tell`` is called with lines about the index and its recall, which is measured only if ``tell`` is given.
    """
    if method not in PAIR_METHODS:
        raise UnknownNameError("method", method, PAIR_METHODS)
    if method == "exact" or (method == "auto" and len(vectors) <= MOST_ALL_PAIRS):
        return None
    index = build_index(vectors, max_memory=max_memory)
    if tell is not None:
        tell(f"Index of {len(index):,} vectors: {index.settings.describe()}.")
        tell(f"Its {measure_recall(index, sample_rows(vectors, N_SAMPLE), vectors).describe()}.")
    return index
