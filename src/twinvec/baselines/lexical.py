"""tf-idf and BM25 as embedders and scorers."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import LEXICAL_KINDS, LexicalKind, Role
from twinvec.errors import InputError, ModelFolderError, check_at_least, check_name
from twinvec.extras import require
from twinvec.files import mapped_vectors, read_any_json, read_json, saved_folder, write_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import EMBEDDER_FILE
from twinvec.model.tokenizer import check_text, check_texts
from twinvec.ownership import MODEL
from twinvec.scorer import Pair, Ranked, checked_pairs, rank_texts
from twinvec.types import Array, Vectors

__all__ = ["Bm25Scorer", "TfidfEmbedder", "TfidfScorer", "fit_lexical"]

KIND, BM25 = LEXICAL_KINDS
TEXTS = "texts.json"
TERMS, IDF = "terms.json", "idf.npy"
DEFAULT_WIDTH = 4096
HINT = "Fit it again: twinvec lexical tfidf TEXTS -o FOLDER."
BM25_HINT = "Fit it again: twinvec lexical bm25 TEXTS -o FOLDER."
WORD = re.compile(r"\w+")


class _Tfidf:
    """A fitted tf-idf of scikit-learn with default settings: the terms and their idf, ``(n_terms,)``."""

    def __init__(self, terms: Sequence[str], idf: Array) -> None:
        text = require("sklearn.feature_extraction.text", extra="eval", feature="tf-idf")
        self.terms, self.idf = list(terms), np.asarray(idf, dtype=np.float64)
        self._vectorizer = text.TfidfVectorizer(vocabulary={term: column for column, term in enumerate(terms)})
        self._vectorizer.idf_ = self.idf

    @classmethod
    def fit(cls, texts: Sequence[str], n_terms: int | None) -> _Tfidf:
        text = require("sklearn.feature_extraction.text", extra="eval", feature="tf-idf")
        vectorizer, listed = text.TfidfVectorizer(max_features=n_terms), _listed(texts)
        try:
            vectorizer.fit(listed)
        except ValueError as error:  # from scikit-learn, if there are no words
            raise InputError("The texts to fit tf-idf on have no words.", hint="Pass texts with words.") from error
        return cls(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_)

    def rows(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - scipy's, which is optional
        """Sparse vectors of the texts, ``(len(texts), n_terms)``, each of length 1 or all zeros."""
        return self._vectorizer.transform(texts)

    @cached_property
    def digest(self) -> str:
        """A digest of everything that affects the vectors."""
        return hashlib.sha256(json.dumps(self.terms).encode() + self.idf.tobytes()).hexdigest()


class TfidfEmbedder:
    """An embedder: dense tf-idf vectors over the most frequent terms of the texts it was fitted on.

    ``folder`` is from :meth:`save`; use :meth:`fit` to create an embedder. A text without any of the terms gets a zero
    vector.

    >>> embedder = TfidfEmbedder.fit(["a cat sits", "a cat sleeps", "rain falls"])
    >>> embedder.width, embedder.embed(["the cat"]).round(2).tolist()
    (5, [[1.0, 0.0, 0.0, 0.0, 0.0]])
    """

    similarity = "cosine"

    def __init__(self, folder: str | os.PathLike[str], name: str | None = None) -> None:
        path = Path(folder)
        about = JsonObject(read_json(path / EMBEDDER_FILE), path / EMBEDDER_FILE, hint=HINT)
        about.word("kind", choices=(KIND,))
        width = about.integer("width")
        terms = read_any_json(path / TERMS)
        idf = np.asarray(mapped_vectors(path / IDF, hint=HINT), dtype=np.float64)
        is_list = isinstance(terms, list) and all(isinstance(term, str) for term in terms)
        if not is_list or len(set(terms)) != width or idf.shape != (1, width) or not np.isfinite(idf).all():
            raise ModelFolderError(f"{path}: {TERMS} and {IDF} do not have {width} terms.", hint=HINT)
        self.folder: Path | None = path
        self._start(_Tfidf(terms, idf[0]), name or str(path))

    def _start(self, tfidf: _Tfidf, name: str) -> None:
        self._tfidf, self.name = tfidf, name
        self.width = len(tfidf.terms)
        self.settings = {"n_terms": self.width}

    @classmethod
    def fit(cls, texts: Sequence[str], n_terms: int = DEFAULT_WIDTH) -> TfidfEmbedder:
        """Learn the ``n_terms`` most frequent terms and their idf."""
        check_at_least(1, n_terms=n_terms)
        fitted = cls.__new__(cls)
        fitted.folder = None
        fitted._start(_Tfidf.fit(texts, n_terms), "tf-idf")
        return fitted

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save to a folder that works as ``model=`` of all functions."""
        with saved_folder(Path(folder), MODEL) as path:
            write_json(path / EMBEDDER_FILE, {"kind": KIND, "width": self.width})
            write_json(path / TERMS, self._tfidf.terms)
            np.save(path / IDF, self._tfidf.idf[None])

    @property
    def identity(self) -> str:
        """A digest of the terms and their idf."""
        return f"{KIND}-{self._tfidf.digest}"

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, each of length 1 or all zeros."""
        if not len(listed := _listed(texts)):
            return np.zeros((0, self.width), dtype=np.float32)
        vectors: Vectors = self._tfidf.rows(listed).astype(np.float32).toarray()
        return vectors


class TfidfScorer:
    """A scorer: the cosine of the tf-idf vectors of two texts, over all terms of the texts it is fitted on.

    >>> TfidfScorer(["a cat sits", "rain falls"]).score([("a cat", "the cat"), ("a cat", "rain")]).tolist()
    [1.0, 0.0]
    """

    name = "tf-idf"

    def __init__(self, texts: Sequence[str]) -> None:
        self._tfidf = _Tfidf.fit(texts, None)

    @property
    def identity(self) -> str:
        """A digest of the terms and their idf."""
        return f"{KIND}-scorer-{self._tfidf.digest}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``, from 0 to 1."""
        checked = checked_pairs(pairs)
        if not checked:
            return np.zeros(0, dtype=np.float32)
        left, right = (self._tfidf.rows([pair[side] for pair in checked]) for side in (0, 1))
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float32).ravel()


class Bm25Scorer:
    """A scorer: BM25 of a query and a text, with the word frequencies and lengths of the corpus ``texts``.

    The formula is Lucene's, without its constant factor k1 + 1, as in bm25s: the sum over the query's words of
    ``idf * tf / (tf + k1 * (1 - b + b * length / mean length))``, ``idf = ln(1 + (n - df + 0.5) / (df + 0.5))``.
    Scores are not symmetric. Words are lowercased sequences of letters and digits.

    >>> scorer = Bm25Scorer(["A cat sits.", "Rain falls.", "The cat and the dog."])
    >>> scorer.rank("a cat", k=2).rows.tolist()
    [0, 2]
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75, name: str = "BM25") -> None:
        self.name = name
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise InputError(f"k1 must be at least 0 and b from 0 to 1, got {k1} and {b}.")
        self.texts, self._k1, self._b = _listed(texts), k1, b
        words = [_words(text) for text in self.texts]
        if not any(words):
            raise InputError("The texts to fit BM25 on have no words.", hint="Pass texts with words.")
        frequencies = Counter(word for each in words for word in set(each))
        n = len(words)
        self._idf = {word: float(np.log(1 + (n - df + 0.5) / (df + 0.5))) for word, df in frequencies.items()}
        self._mean_length = sum(map(len, words)) / n

    @classmethod
    def open(cls, folder: str | os.PathLike[str], name: str | None = None) -> Bm25Scorer:
        """The scorer that :meth:`save` wrote to a folder."""
        path = Path(folder)
        about = JsonObject(read_json(path / EMBEDDER_FILE), path / EMBEDDER_FILE, hint=BM25_HINT)
        about.word("kind", choices=(BM25,))
        texts = read_any_json(path / TEXTS)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ModelFolderError(f"{path / TEXTS} is not a list of texts.", hint=BM25_HINT)
        try:
            return cls(texts, k1=about.number("k1"), b=about.number("b"), name=name or str(path))
        except InputError as error:
            raise ModelFolderError(f"{path}: {error.problem}", hint=BM25_HINT) from error

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save to a folder that :func:`twinvec.load_scorer` reads. It contains the texts."""
        with saved_folder(Path(folder), MODEL) as path:
            write_json(path / EMBEDDER_FILE, {"kind": BM25, "k1": self._k1, "b": self._b})
            write_json(path / TEXTS, self.texts)

    @cached_property
    def _index(self) -> Any:  # noqa: ANN401 - bm25s, which is optional
        """The index of the corpus, built at first use."""
        index = require("bm25s", extra="search", feature="BM25").BM25(method="lucene", k1=self._k1, b=self._b)
        index.index([_words(text) for text in self.texts], show_progress=False)
        return index

    @cached_property
    def identity(self) -> str:
        """A digest of the word frequencies and the settings."""
        parts = [self._k1, self._b, self._mean_length, len(self.texts), sorted(self._idf.items())]
        return f"bm25-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each (query, text), ``(len(pairs),)``; words that are not in the corpus are ignored."""
        return np.array([self._score(query, text) for query, text in checked_pairs(pairs)], dtype=np.float32)

    def _score(self, query: str, text: str) -> float:
        words = _words(text)
        counts = Counter(words)
        share = self._k1 * (1 - self._b + self._b * len(words) / self._mean_length)
        shared = (word for word in _words(query) if word in counts and word in self._idf)
        return sum(self._idf[word] * counts[word] / (counts[word] + share) for word in shared)

    def rank(self, query: str, texts: Sequence[str] | None = None, k: int | None = None) -> Ranked:
        """The ``k`` best texts for a query, best first; by default from the corpus, with an index."""
        if texts is not None:
            return rank_texts(self, query, texts, k)
        check_at_least(1, k=k)
        known = [word for word in _words(check_text(query, "query")) if word in self._idf]
        scores = np.zeros(len(self.texts), dtype=np.float32)
        if known:
            scores = np.asarray(self._index.get_scores(known), dtype=np.float32)
        n_best = min(k or len(scores), len(scores))
        near = np.flatnonzero(scores >= np.partition(scores, -n_best)[-n_best])  # including ties with the last
        order = near[np.argsort(-scores[near], kind="stable")][:n_best]
        return Ranked(order, scores[order])


def fit_lexical(texts: Sequence[str], folder: str | os.PathLike[str], kind: LexicalKind = "tfidf") -> None:
    """Fit tf-idf (an embedder) or BM25 (a scorer) on texts, and save it to a new folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "bm25"
    >>> fit_lexical(["A cat sits.", "Rain falls."], folder, "bm25")
    >>> Bm25Scorer.open(folder).rank("a cat", k=1).rows.tolist()
    [0]
    """
    check_name("kind", kind, LEXICAL_KINDS)
    fitted = TfidfEmbedder.fit(texts) if kind == "tfidf" else Bm25Scorer(texts)
    fitted.save(folder)


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _listed(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError("Expected a list of texts, got one text.", hint="Put it in a list.")
    return check_texts(texts)
