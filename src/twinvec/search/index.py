"""The index protocol, how to choose an index for a number of vectors and a memory limit, and exact rescoring."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil, log2, sqrt
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from twinvec.choices import show_size
from twinvec.errors import InputError, check_at_least, check_name
from twinvec.search.exact import Hits, no_hits
from twinvec.search.measures import check_width, find_measure
from twinvec.types import Array, Ids
from twinvec.vectors import numeric_rows

__all__ = ["Index", "IndexKind", "IndexSettings", "check_queries", "choose_index", "rescored", "search_index"]

IndexKind = Literal["exact", "flat", "hnsw", "ivf-sq8", "ivf-pq"]

MOST_SCANNED = 50_000  # vectors; an exact query over this many takes a few milliseconds
MOST_HNSW = 1_000_000  # a larger graph takes too long to build
FEWEST_PER_CELL = 39  # with fewer, k-means trains poorly
MOST_CELLS = 16_384
MOST_CODE_BYTES = 96
ID_BYTES = 8
GROWTH = 1.5  # spare room in lists that grow as vectors are added


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How an index is built and searched. Scores are cosines.

    ``exact`` compares with all vectors, block by block; ``flat`` does so in FAISS. ``hnsw`` is a graph with
    ``n_links`` per vector. The ``ivf`` kinds divide the vectors among ``n_cells`` and store codes: ``sq8`` one byte
    per value, ``pq`` ``code_bytes`` per vector. ``effort`` is the number of graph candidates or cells that a search
    visits; ``oversample`` is the number of candidates per hit that are rescored from the vectors.
    """

    kind: IndexKind
    n_links: int = 32
    n_cells: int = 1
    code_bytes: int = 48
    effort: int = 64
    oversample: int = 4

    def __post_init__(self) -> None:
        check_name("kind of index", self.kind, get_args(IndexKind))
        check_at_least(1, **{name: value for name, value in asdict(self).items() if name != "kind"})

    def describe(self) -> str:
        """Return the settings as one line of text.

        >>> IndexSettings("hnsw").describe()
        'a graph (HNSW) with 32 links per vector; a search visits 64 candidates'
        """
        cells = f"{self.n_cells:,} cells (IVF), {min(self.effort, self.n_cells)} visited per search"
        return {
            "exact": "exact search, comparing with every vector",
            "flat": "exact search in FAISS (flat)",
            "hnsw": f"a graph (HNSW) with {self.n_links} links per vector; a search visits {self.effort} candidates",
            "ivf-sq8": f"{cells}, one byte per value (SQ8)",
            "ivf-pq": f"{cells}, {self.code_bytes} bytes per vector (PQ)",
        }[self.kind]


def choose_index(n: int, width: int, max_memory: int | None = None) -> IndexSettings:
    """Choose the settings for ``n`` vectors within ``max_memory`` bytes (default: no limit).

    Exact search while it is fast; then a graph, which has the best recall; then cells with one byte per value; and if
    these do not fit in memory, cells with shorter codes, which need the vectors on disk for rescoring.

    >>> [choose_index(n, 384, 16 * 2**30).kind for n in (10_000, 200_000, 10_000_000, 40_000_000)]
    ['exact', 'hnsw', 'ivf-sq8', 'ivf-pq']
    """
    if n < 0 or width < 1:
        raise InputError(f"n must be at least 0 and width at least 1, got {n} and {width}.")
    limit = float("inf") if max_memory is None else max_memory
    n_cells = _n_cells(n)
    effort = max(16, min(64, n_cells // 32))
    choices = [
        *([IndexSettings("exact")] if n <= MOST_SCANNED else []),
        *([IndexSettings("hnsw")] if MOST_SCANNED < n <= MOST_HNSW else []),
        IndexSettings("ivf-sq8", n_cells=n_cells, effort=effort),
        *(
            IndexSettings("ivf-pq", n_cells=n_cells, effort=effort, code_bytes=code_bytes, oversample=20)
            for code_bytes in _code_sizes(width)
        ),
    ]
    for settings in choices:
        if index_bytes(settings, n, width) <= limit:
            return settings
    least = min(index_bytes(settings, n, width) for settings in choices)
    raise InputError(
        f"An index of {n:,} vectors of width {width} needs at least {show_size(least)}, "
        f"but the limit is {show_size(int(limit))}.",
        hint="Raise the memory limit, or split the vectors into several indexes.",
    )


def index_bytes(settings: IndexSettings, n: int, width: int) -> int:
    """An estimate of the bytes of memory that building and searching takes, without the source vectors.

    >>> index_bytes(IndexSettings("exact"), 1000, 384)
    1536000
    """
    floats = 4 * width
    if settings.kind in ("exact", "flat"):
        return n * floats
    if settings.kind == "hnsw":
        return ceil(n * (floats + 4 * 2 * settings.n_links + 16) * 1.1)
    codes = width if settings.kind == "ivf-sq8" else settings.code_bytes
    training = sample_size(settings, n) * floats + 2 * settings.n_cells * floats
    return ceil(n * (codes + ID_BYTES) * GROWTH) + training


def sample_size(settings: IndexSettings, n: int) -> int:
    """The number of vectors, of ``n``, used to train cells and codes."""
    return min(n, max(64 * settings.n_cells, 20_000)) if settings.kind.startswith("ivf") else 0


def _n_cells(n: int) -> int:
    """A power of two near ``4 * sqrt(n)``, with enough vectors for each cell."""
    wanted = min(4 * sqrt(max(n, 1)), max(n / FEWEST_PER_CELL, 1), MOST_CELLS)
    return int(2 ** int(log2(max(wanted, 1))))


def _code_sizes(width: int) -> list[int]:
    """Possible PQ code sizes in bytes, longest first: half a byte per group of two to eight values.

    >>> _code_sizes(384), _code_sizes(7)
    ([96, 64, 48, 32, 24], [])
    """
    groups = [count for count in range(2, width + 1, 2) if width % count == 0 and 2 <= width // count <= 8]
    return sorted((count // 2 for count in groups if count // 2 <= MOST_CODE_BYTES), reverse=True)


ROWS_AT_ONCE = 8192  # 25 MB of float64 rows of width 384
NO_ID = -1  # where fewer candidates were found than requested


def rescored(queries: ArrayLike, ids: Ids, vectors: Array, *, k: int, similarity: str = "cosine") -> Hits:
    """The ``k`` best candidates for each query, scored exactly, best first; ties by id.

    ``queries`` is ``(n, width)``; ``ids`` is ``(n, m)``, -1 for none; ``vectors`` is ``(all, width)``, and may be a
    memory-mapped file of any numeric type. Missing hits have the id -1 and the score minus infinity.

    >>> rescored([[1.0, 0.0]], np.array([[0, 2, -1]]), np.array([[0.0, 1.0], [5.0, 0.0], [1.0, 1.0]]), k=2).ids.tolist()
    [[2, 0]]
    """
    query_rows, stored = numeric_rows(queries, "queries"), numeric_rows(vectors, "vectors")
    check_width(query_rows, stored.shape[1])
    if ids.size and ids.max() >= len(stored):
        raise InputError(
            f"A candidate has the id {ids.max()}, but there are only {len(stored)} vectors.",
            hint="Pass the vectors from which the index was built.",
        )
    ids = np.sort(ids, axis=1)  # the stable sort below then orders ties by id
    exact = find_measure(similarity).exact
    scores = np.full(ids.shape, -np.inf, dtype=np.float32)
    n_at_once = max(1, ROWS_AT_ONCE // max(ids.shape[1], 1))
    for start in range(0, len(ids), n_at_once):
        part = slice(start, start + n_at_once)
        rows, columns = np.nonzero(ids[part] != NO_ID)
        different, inverse = np.unique(
            ids[part][rows, columns], return_inverse=True
        )  # sorted, so that a disk is read in order
        found = np.asarray(stored[different], dtype=np.float64)[inverse.reshape(-1)]
        scores[part][rows, columns] = exact(query_rows[part][rows].astype(np.float64), found)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Hits(ids, scores).take(order)


class Index(Protocol):
    """Vectors that can be searched by cosine; ids number them in the order in which they were added."""

    settings: IndexSettings
    width: int

    def __len__(self) -> int: ...

    @property
    def is_trained(self) -> bool:
        """Whether vectors can be added."""

    def train(self, sample: Array) -> None:
        """Train the index on a sample ``(n, width)``."""

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)``."""

    def search(self, queries: ArrayLike, k: int = 10) -> Hits:
        """The approximate ``k`` nearest to each query ``(n, width)``; missing hits have the id -1."""

    def write(self, folder: Path) -> None:
        """Write the index to a folder."""


def search_index(index: Index, queries: ArrayLike, *, k: int = 10, vectors: Array | None = None) -> Hits:
    """The ``k`` nearest to each query ``(n, width)`` or one ``(width,)``.

    With ``vectors``, from which the index was built (a memory-mapped file works), more candidates are fetched and
    their scores are exact; without, scores are those of the index.
    """
    rows = check_queries(queries, index.width)
    check_at_least(1, k=k)
    k = min(k, len(index))
    if not k:
        return no_hits(len(rows))
    if vectors is not None and len(vectors) != len(index):
        raise InputError(
            f"The index has {len(index)} vectors, but {len(vectors)} were passed.",
            hint="Pass the vectors from which the index was built.",
        )
    if vectors is None or index.settings.kind == "exact":
        return index.search(rows, k)
    found = index.search(rows, min(k * index.settings.oversample, len(index)))
    return rescored(rows, found.ids, vectors, k=k)


def check_queries(queries: ArrayLike, width: int) -> Array:
    """Return queries as an array ``(n, width)``, or raise an error."""
    rows = numeric_rows(np.atleast_2d(queries), "queries")
    check_width(rows, width)
    return rows
