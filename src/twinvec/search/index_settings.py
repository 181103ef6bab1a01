"""Which index for how many vectors: settings, what they cost, and a choice from the number and the memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import Literal, get_args

from twinvec.errors import InputError, UnknownNameError
from twinvec.sizes import show_size

__all__ = ["IndexKind", "IndexSettings", "choose_index", "index_bytes"]

IndexKind = Literal["exact", "flat", "hnsw", "ivf-sq8", "ivf-pq"]

MOST_EXACT = 50_000  # up to here a query by exact search takes a few milliseconds
MOST_HNSW = 1_000_000  # a graph of more takes long to build
FEWEST_PER_CELL = 39  # below, k-means has too little to learn from
MOST_CELLS = 16_384
MOST_CODE_BYTES = 96
ID_BYTES = 8
GROWTH = 1.5  # of lists that grow as vectors are added


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How an index is built and searched. Scores are cosines.

    ``exact`` compares with all vectors, by blocks; ``flat`` does so in FAISS. ``hnsw`` is a graph of ``n_links`` for
    each vector. The ``ivf`` kinds divide the vectors among ``n_cells`` and keep codes: ``sq8`` a byte for each value,
    ``pq`` ``code_bytes`` for a vector. ``effort`` is how many candidates of the graph, or how many cells, a search
    looks at; ``oversample`` how many times more hits than wanted are scored again from the vectors themselves.
    """

    kind: IndexKind
    n_links: int = 32
    n_cells: int = 1
    code_bytes: int = 48
    effort: int = 64
    oversample: int = 4

    def __post_init__(self) -> None:
        if self.kind not in get_args(IndexKind):
            raise UnknownNameError("kind of index", self.kind, get_args(IndexKind))
        for name in ("n_links", "n_cells", "code_bytes", "effort", "oversample"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")

    def words(self) -> str:
        """What will be built, in words.

        >>> IndexSettings("hnsw").words()
        'a graph (HNSW) with 32 links for each vector; a search looks at 64 candidates'
        """
        cells = f"{self.n_cells:,} cells (IVF), of which a search looks at {min(self.effort, self.n_cells)}"
        return {
            "exact": "exact search, which compares with every vector",
            "flat": "exact search in FAISS (flat)",
            "hnsw": f"a graph (HNSW) with {self.n_links} links for each vector; "
            f"a search looks at {self.effort} candidates",
            "ivf-sq8": f"{cells}, a byte for each value (SQ8)",
            "ivf-pq": f"{cells}, {self.code_bytes} bytes for each vector (PQ)",
        }[self.kind]


def choose_index(n: int, width: int, max_memory: int | None = None) -> IndexSettings:
    """Settings for ``n`` vectors within ``max_memory`` bytes (default: no limit).

    Exact search while that is quick, then a graph, which finds most; then cells with codes of a byte for each value,
    and where the memory does not hold these, shorter codes, which need the vectors on the disk to be scored again.

    >>> [choose_index(n, 384, 16 * 2**30).kind for n in (10_000, 200_000, 10_000_000, 40_000_000)]
    ['exact', 'hnsw', 'ivf-sq8', 'ivf-pq']
    """
    if n < 0 or width < 1:
        raise InputError(f"There must be at least no vectors and a width of 1, got {n} and {width}.")
    limit = float("inf") if max_memory is None else max_memory
    n_cells = _n_cells(n)
    effort = max(16, min(64, n_cells // 32))
    choices = [
        *([IndexSettings("exact")] if n <= MOST_EXACT else []),
        *([IndexSettings("hnsw")] if MOST_EXACT < n <= MOST_HNSW else []),
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
        f"more than the {show_size(int(limit))} allowed.",
        hint="Allow more memory, or divide the vectors among several indexes.",
    )


def index_bytes(settings: IndexSettings, n: int, width: int) -> int:
    """About how much memory building and searching takes, without the vectors that are read.

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
    """How many of ``n`` vectors cells and codes are learnt from."""
    return min(n, max(64 * settings.n_cells, 20_000)) if settings.kind.startswith("ivf") else 0


def _n_cells(n: int) -> int:
    """A power of two near four times the root of ``n``, with enough vectors for each cell."""
    wanted = min(4 * sqrt(max(n, 1)), max(n / FEWEST_PER_CELL, 1), MOST_CELLS)
    return int(2 ** int(log2(max(wanted, 1))))


def _code_sizes(width: int) -> list[int]:
    """Bytes that a vector's code may have, longest first: half a byte for each of its groups of two to eight values.

    >>> _code_sizes(384), _code_sizes(7)
    ([96, 64, 48, 32, 24], [])
    """
    groups = [count for count in range(2, width + 1, 2) if width % count == 0 and 2 <= width // count <= 8]
    return sorted((count // 2 for count in groups if count // 2 <= MOST_CODE_BYTES), reverse=True)
