"""Describe clusters: size, closeness, key words, nearest texts, and a two-dimensional map."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import chain
from math import log
from typing import Any, Literal
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import PROJECTIONS, Projection
from twinvec.cluster.kmeans import nonempty_rows
from twinvec.data.korean import HANGUL, KOREAN_FUNCTION_WORDS, korean_nouns, without_particles
from twinvec.data.sentences import FUNCTION_WORDS
from twinvec.errors import InputError, check_name
from twinvec.extras import require
from twinvec.search.measures import unit_rows_of
from twinvec.types import Ids, Vectors
from twinvec.vectors import numeric_rows, unit_rows

__all__ = ["Cluster", "Clustering", "choose_projection", "describe_clusters", "key_words", "map_vectors"]

WORD = re.compile(r"[^\W\d_][^\W_]*(?:['\u2019-][^\W_]+)*")  # starts with a letter; digits may follow
# Frequent words, beyond the function words, that would top the list in small clusters.
FILLERS = frozenset(["again", "further", "get", "got", "let", "now", "once", "use", "used", "using", "yes"])


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without function words.

    >>> words_of("It's the B-tree of 3 UTF-8 keys.")
    ['b-tree', 'utf-8', 'keys']
    """
    lower = normalize("NFC", text.lower())  # NFC: Hangul in syllables
    return [word for word in WORD.findall(lower) if len(word) > 1 and not _is_stop_word(word)]


def _is_stop_word(word: str) -> bool:
    # A contraction is split: don't is "don" and "t".
    return word in FILLERS or word in KOREAN_FUNCTION_WORDS or FUNCTION_WORDS.issuperset(re.split(r"['\u2019]", word))


def _words_of_all(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text; Korean ones without particles, or only the nouns if kiwipiepy is installed."""
    words = [words_of(text) for text in texts]
    known = set(chain.from_iterable(words))
    if not any(map(HANGUL.search, known)):
        return words
    if (nouns_of := korean_nouns()) is None:
        stem = without_particles(known)
        return [[noun for noun in map(stem, own) if not _is_stop_word(noun)] for own in words]
    return [
        [
            *(word for word in own if not HANGUL.search(word)),
            *(noun for noun in nouns_of(text) if len(noun) > 1 and not _is_stop_word(noun)),
        ]
        for text, own in zip(texts, words, strict=True)
    ]


def key_words(texts: Sequence[str], labels: Sequence[int], n_clusters: int, *, n: int = 5) -> list[list[str]]:
    """The ``n`` words that best distinguish each cluster, by weight (class-based TF-IDF), then alphabetically.

    ``labels`` has one cluster number per text, counted from 0; texts labeled -1 are ignored.

    >>> key_words(["red cat", "old cat", "red car"], [0, 0, 1], 2, n=1)
    [['cat'], ['car']]
    """
    counts: list[Counter[str]] = [Counter() for _ in range(n_clusters)]
    grouped = [(text, label) for text, label in zip(texts, labels, strict=True) if label >= 0]
    words = _words_of_all([text for text, _ in grouped])
    for own, (_, label) in zip(words, grouped, strict=True):
        counts[label].update(own)
    totals = [count.total() for count in counts]
    everywhere: Counter[str] = Counter()
    for count in counts:
        everywhere.update(count)
    mean = sum(totals) / max(n_clusters, 1)
    return [_heaviest(count, total, everywhere, mean, n) for count, total in zip(counts, totals, strict=True)]


def _heaviest(count: Counter[str], total: int, everywhere: Counter[str], mean: float, n: int) -> list[str]:
    weights = {word: often / total * log(1 + mean / everywhere[word]) for word, often in count.items()}
    return sorted(weights, key=lambda word: (-weights[word], word))[:n]


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster: ``closeness`` is the mean cosine with its mean direction; ``rows`` and ``texts`` are the nearest."""

    label: int
    size: int
    closeness: float
    words: tuple[str, ...]
    rows: tuple[int, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clustering:
    """All clusters by label; ``n_alone`` counts the texts without a cluster."""

    method: str
    n_texts: int
    n_alone: int
    clusters: tuple[Cluster, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return asdict(self)


def describe_clusters(
    texts: Sequence[str], vectors: ArrayLike, labels: ArrayLike, *, method: str, n_texts: int = 3, n_words: int = 5
) -> Clustering:
    """Describe the clusters of texts, given their ``vectors`` ``(n, width)`` and ``labels`` ``(n,)``; -1 means none.

    Each cluster has ``n_words`` key words and the ``n_texts`` distinct texts nearest to its mean direction.
    """
    rows, marks = numeric_rows(vectors, "vectors"), np.asarray(labels, dtype=np.int64)
    if not len(texts) == len(rows) == len(marks):
        raise InputError(f"Got {len(texts)} texts, {len(rows)} vectors and {len(marks)} labels; the counts must match.")
    units = unit_rows_of(rows)
    n_clusters = int(marks.max(initial=-1)) + 1
    words = key_words(texts, marks.tolist(), n_clusters, n=n_words)
    order = np.argsort(marks, kind="stable")
    ends = np.searchsorted(marks[order], np.arange(n_clusters + 1))
    clusters = tuple(
        _described(label, order[ends[label] : ends[label + 1]], texts, units, words=words[label], n_texts=n_texts)
        for label in range(n_clusters)
    )
    return Clustering(method, len(texts), int(np.count_nonzero(marks < 0)), clusters)


def _described(
    label: int, members: Ids, texts: Sequence[str], units: Vectors, *, words: Sequence[str], n_texts: int
) -> Cluster:
    own = units[members]
    cosines = own @ unit_rows(own.sum(axis=0, dtype=np.float64).astype(np.float32))
    nearest: dict[str, int] = {}
    for index in np.argsort(-cosines, kind="stable").tolist():
        nearest.setdefault(texts[members[index]], int(members[index]))
        if len(nearest) == n_texts:
            break
    closeness = round(float(cosines.mean()), 6) if len(members) else 0.0
    return Cluster(label, len(members), closeness, tuple(words), tuple(nearest.values()), tuple(nearest))


BLOCK_ROWS = 8192
FEWEST_FOR_UMAP = 4  # UMAP's neighbor graph needs this many


def choose_projection(wanted: Projection, n: int) -> Literal["pca", "umap"]:
    """Resolve ``auto`` for ``n`` rows: UMAP if it is installed and has enough rows, else PCA.

    Raises an error if the wanted projection is not possible.
    """
    check_name("projection", wanted, PROJECTIONS)
    if wanted == "auto":
        return "umap" if find_spec("umap") and n >= FEWEST_FOR_UMAP else "pca"
    if wanted == "umap":
        require("umap", extra="map", feature="A map by UMAP")
        if n < FEWEST_FOR_UMAP:
            raise InputError(f"UMAP needs at least {FEWEST_FOR_UMAP} vectors, got {n}.", hint="Use pca.")
    return wanted


def map_vectors(vectors: ArrayLike, projection: Projection = "auto", *, seed: int = 0) -> NDArray[np.float32]:
    """Two-dimensional coordinates, ``(n, 2)``, of ``vectors`` ``(n, width)``. Similar rows get nearby points."""
    units = unit_rows_of(nonempty_rows(vectors))
    if choose_projection(projection, len(units)) == "pca":
        return principal_points(units)
    umap = require("umap", extra="map", feature="A map by UMAP")
    reducer = umap.UMAP(n_neighbors=min(15, len(units) - 1), metric="cosine", random_state=seed, n_jobs=1)
    return np.asarray(reducer.fit_transform(units), dtype=np.float32)


def principal_points(rows: Vectors) -> NDArray[np.float32]:
    """The first two principal components of rows ``(n, width)``, as ``(n, 2)``.

    The largest value of each direction is positive, so that maps are not mirrored from run to run.

    >>> principal_points(np.array([[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]], dtype=np.float32)).round(3).tolist()
    [[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]]
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    spread = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS] - mean
        spread += block.T @ block
    _, directions = np.linalg.eigh(spread)
    two = directions[:, ::-1][:, :2]
    two = two * np.where(two[np.abs(two).argmax(axis=0), np.arange(two.shape[1])] < 0, -1, 1)
    points = np.zeros((len(rows), 2), dtype=np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        points[part, : two.shape[1]] = (rows[part] - mean) @ two
    return points
