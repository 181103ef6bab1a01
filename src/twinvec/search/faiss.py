"""Indexes of FAISS: flat, graphs (HNSW), and cells with codes (IVF with SQ8 or PQ).

Vectors are added at length 1 and compared by inner product, so scores are cosines. PQ codes have four bits for each
group of values, which FAISS scans several at once; at equal size they are as good as eight bits and ten times as fast.
Large numbers of cells are found among themselves by a graph, and learnt in two levels.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.search.exact import Hits
from twinvec.search.index import IndexSettings
from twinvec.search.measures import unit_rows_of
from twinvec.types import Array, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["FaissIndex"]

FILE = "index.faiss"
TYPES = {  # by kind, as FAISS calls them
    "flat": "IndexFlat",
    "hnsw": "IndexHNSWFlat",
    "ivf-sq8": "IndexIVFScalarQuantizer",
    "ivf-pq": "IndexIVFPQFastScan",
}
CELLS_OF_A_LIST = 1024  # cells that are compared one by one; more have a graph
BUILD_EFFORT = 80  # candidates for the links of a new vector in a graph
ROUNDS, LEAST_POINTS = 10, 1  # of k-means


class FaissIndex:
    """An index of FAISS. Not for several writers at once; any number of threads may search."""

    def __init__(self, settings: IndexSettings, width: int, index: Any) -> None:  # noqa: ANN401 - a compiled class
        self.settings, self.width = settings, width
        self._index = index

    @classmethod
    def empty(cls, settings: IndexSettings, width: int) -> FaissIndex:
        """An index without vectors."""
        faiss = _faiss()
        if settings.kind == "ivf-pq" and width % (2 * settings.code_bytes):
            raise InputError(
                f"Codes of {settings.code_bytes} bytes divide a vector into {2 * settings.code_bytes} equal groups, "
                f"but its width is {width}.",
                hint="Let choose_index choose, or use ivf-sq8.",
            )
        index = faiss.index_factory(width, _recipe(settings), faiss.METRIC_INNER_PRODUCT)
        if settings.kind == "hnsw":
            index.hnsw.efConstruction = BUILD_EFFORT
        return cls(settings, width, index)

    @classmethod
    def read(cls, folder: Path, settings: IndexSettings, width: int) -> FaissIndex:
        """The index in a folder."""
        try:
            index = _faiss().read_index(str(folder / FILE))
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{folder / FILE} cannot be read: {reason}.", hint="Build the index again.") from error
        if not _is_of(index, settings, width):
            raise InputError(f"{folder / FILE} is another index than its settings say.", hint="Build the index again.")
        return cls(settings, width, index)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def is_trained(self) -> bool:
        """Whether cells and codes have been learnt."""
        return bool(self._index.is_trained)

    def train(self, sample: Array) -> None:
        """Learn cells and codes from a sample ``(n, width)``."""
        rows = self._rows(sample)
        if len(rows) < self.settings.n_cells:
            raise InputError(
                f"{self.settings.n_cells} cells cannot be learnt from {len(rows)} vectors.",
                hint="Give more, or let choose_index choose.",
            )
        if self.settings.kind.startswith("ivf"):
            self._index.cp.min_points_per_centroid = LEAST_POINTS  # or FAISS warns on standard error
            if self.settings.n_cells > CELLS_OF_A_LIST:
                self._index.quantizer.add(_centers(rows, self.settings.n_cells))
        self._index.train(rows)

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)``; cells and codes must have been learnt."""
        if not self.is_trained:
            raise InputError("The index must be trained before vectors are added.", hint="Use build_index.")
        self._index.add(self._rows(vectors))

    def search(self, queries: ArrayLike, k: int = 10) -> Hits:
        """The nearest ``k`` to each query ``(n, width)``, as far as the index can tell; ids are -1 where none is."""
        rows = self._rows(queries)
        if not (len(rows) and k):
            return Hits(np.empty((len(rows), k), dtype=np.int64), np.empty((len(rows), k), dtype=np.float32))
        scores, ids = self._index.search(rows, k, params=self._effort(k))
        return Hits(ids, np.where(ids < 0, -np.inf, scores).astype(np.float32, copy=False))

    def write(self, folder: Path) -> None:
        """Put the index into a folder."""
        _faiss().write_index(self._index, str(folder / FILE))

    def _rows(self, vectors: ArrayLike) -> Vectors:
        rows = numeric_rows(vectors, "vectors")
        if rows.shape[1] != self.width:
            raise InputError(f"The vectors have width {rows.shape[1]}, the index {self.width}.")
        return unit_rows_of(rows)

    def _effort(self, k: int) -> Any:  # noqa: ANN401 - a compiled class
        faiss, effort = _faiss(), self.settings.effort
        if self.settings.kind == "hnsw":
            return faiss.SearchParametersHNSW(efSearch=min(max(effort, k), max(len(self), 1)))
        if not self.settings.kind.startswith("ivf"):
            return None
        if self.settings.n_cells > CELLS_OF_A_LIST:
            graph = faiss.SearchParametersHNSW(efSearch=min(2 * effort, self.settings.n_cells))
            return faiss.SearchParametersIVF(nprobe=min(effort, self.settings.n_cells), quantizer_params=graph)
        return faiss.SearchParametersIVF(nprobe=min(effort, self.settings.n_cells))


def _recipe(settings: IndexSettings) -> str:
    """What FAISS's factory calls the index."""
    cells = f"IVF{settings.n_cells}" + ("_HNSW32" if settings.n_cells > CELLS_OF_A_LIST else "")
    return {
        "flat": "Flat",
        "hnsw": f"HNSW{settings.n_links}",
        "ivf-sq8": f"{cells},SQ8",
        "ivf-pq": f"{cells},PQ{2 * settings.code_bytes}x4fs",
    }[settings.kind]


def _is_of(index: Any, settings: IndexSettings, width: int) -> bool:  # noqa: ANN401 - a compiled class
    """Whether an index from a file is what the settings beside it say."""
    kind = type(index).__name__.removesuffix("IP")  # which the metric says, too
    if (kind, index.d, index.metric_type) != (TYPES[settings.kind], width, _faiss().METRIC_INNER_PRODUCT):
        return False
    if settings.kind == "hnsw":
        return bool(index.hnsw.nb_neighbors(0) == 2 * settings.n_links)
    if settings.kind == "ivf-pq" and 2 * settings.code_bytes != index.pq.M:
        return False
    return not settings.kind.startswith("ivf") or bool(index.nlist == settings.n_cells)


def _centers(rows: Vectors, n_cells: int) -> Vectors:
    """Centres of cells, ``(n_cells, width)``, learnt from ``rows`` in two levels: in large cells, and within each.

    The work is that of twice the root of ``n_cells``, not of all: a hundredth for 16,384.
    """
    n_large = int(np.sqrt(n_cells))
    _, cells = _k_means(rows, n_large)
    counts = np.bincount(cells, minlength=n_large)
    shares = _shares(counts, n_cells)
    parts = [_k_means(rows[cells == cell], share)[0] for cell, share in enumerate(shares.tolist()) if share]
    return np.concatenate(parts)


def _shares(counts: Array, total: int) -> Array:
    """``total`` divided in proportion to ``counts`` ``(n,)``, whole numbers, none above its count.

    >>> _shares(np.array([5, 0, 15]), 4).tolist()
    [1, 0, 3]
    """
    exact = counts * (total / counts.sum())
    shares: Array = np.floor(exact).astype(np.int64)
    for cell in np.argsort(shares - exact, kind="stable")[: total - shares.sum()]:
        shares[cell] += 1
    return shares


def _k_means(rows: Vectors, n_cells: int) -> tuple[Vectors, Array]:
    """Centres ``(n_cells, width)`` at length 1, and the cell of every row ``(n,)``."""
    faiss = _faiss()
    learnt = faiss.Kmeans(
        rows.shape[1], n_cells, niter=ROUNDS, spherical=True, seed=0, min_points_per_centroid=LEAST_POINTS
    )
    learnt.train(np.ascontiguousarray(rows))
    return learnt.centroids, learnt.index.search(rows, 1)[1].ravel()


def _faiss() -> ModuleType:
    return require("faiss", extra="search", feature="An approximate index")
