"""FAISS indexes: flat, graphs (HNSW), and cells with codes (IVF with SQ8 or PQ).

Vectors are scaled to length 1 and compared by inner product, so scores are cosines. PQ codes use four bits per group
of values, which FAISS scans in parallel: as accurate as eight-bit codes of the same size, and ten times as fast. With
many cells, the nearest ones are found by a graph, and training has two levels.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.search.exact import Hits, no_hits
from twinvec.search.index import IndexSettings
from twinvec.search.measures import unit_rows_of
from twinvec.types import Array, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["FaissIndex"]

FILE = "index.faiss"
TYPES = {  # the FAISS class of each kind
    "flat": "IndexFlat",
    "hnsw": "IndexHNSWFlat",
    "ivf-sq8": "IndexIVFScalarQuantizer",
    "ivf-pq": "IndexIVFPQFastScan",
}
CELLS_OF_A_LIST = 1024  # with more cells, a graph finds the nearest ones
BUILD_EFFORT = 80  # candidates examined when a vector is linked into the graph
ROUNDS, LEAST_POINTS = 10, 1  # of k-means


class FaissIndex:
    """A FAISS index. Any number of threads may search it; only one may add vectors."""

    def __init__(self, settings: IndexSettings, width: int, index: Any) -> None:  # noqa: ANN401 - a compiled class
        self.settings, self.width = settings, width
        self._index = index

    @classmethod
    def empty(cls, settings: IndexSettings, width: int) -> FaissIndex:
        """Create an index without vectors."""
        faiss = _faiss()
        if settings.kind == "ivf-pq" and width % (2 * settings.code_bytes):
            raise InputError(
                f"Codes of {settings.code_bytes} bytes need a width divisible by {2 * settings.code_bytes}, "
                f"but the width is {width}.",
                hint="Use the settings of choose_index, or ivf-sq8.",
            )
        index = faiss.index_factory(width, _factory_string(settings), faiss.METRIC_INNER_PRODUCT)
        if settings.kind == "hnsw":
            index.hnsw.efConstruction = BUILD_EFFORT
        return cls(settings, width, index)

    @classmethod
    def read(cls, folder: Path, settings: IndexSettings, width: int) -> FaissIndex:
        """Load the index from a folder."""
        try:
            index = _faiss().read_index(str(folder / FILE))
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{folder / FILE} cannot be read: {reason}.", hint="Rebuild the index.") from error
        if not _matches(index, settings, width):
            raise InputError(f"{folder / FILE} does not match the index settings.", hint="Rebuild the index.")
        return cls(settings, width, index)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def is_trained(self) -> bool:
        """Whether cells and codes have been trained."""
        return bool(self._index.is_trained)

    def train(self, sample: Array) -> None:
        """Train cells and codes on a sample ``(n, width)``."""
        rows = self._rows(sample)
        if len(rows) < self.settings.n_cells:
            raise InputError(
                f"{len(rows)} vectors are too few to train {self.settings.n_cells} cells.",
                hint="Pass more vectors, or use the settings of choose_index.",
            )
        if self.settings.kind.startswith("ivf"):
            self._index.cp.min_points_per_centroid = LEAST_POINTS  # otherwise FAISS warns on standard error
            if self.settings.n_cells > CELLS_OF_A_LIST:
                self._index.quantizer.add(_centers(rows, self.settings.n_cells))
        self._index.train(rows)

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)`` to a trained index."""
        if not self.is_trained:
            raise InputError("The index must be trained before vectors are added.", hint="Use build_index.")
        self._index.add(self._rows(vectors))

    def search(self, queries: ArrayLike, k: int = 10) -> Hits:
        """The approximate ``k`` nearest to each query ``(n, width)``; missing hits have the id -1."""
        rows = self._rows(queries)
        if not (len(rows) and k):
            return no_hits(len(rows), k)
        scores, ids = self._index.search(rows, k, params=self._effort(k))
        return Hits(ids, np.where(ids < 0, -np.inf, scores).astype(np.float32, copy=False))

    def write(self, folder: Path) -> None:
        """Write the index to a folder."""
        _faiss().write_index(self._index, str(folder / FILE))

    def _rows(self, vectors: ArrayLike) -> Vectors:
        rows = numeric_rows(vectors, "vectors")
        if rows.shape[1] != self.width:
            raise InputError(f"The vectors have width {rows.shape[1]}, but the index has width {self.width}.")
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


def _factory_string(settings: IndexSettings) -> str:
    cells = f"IVF{settings.n_cells}" + ("_HNSW32" if settings.n_cells > CELLS_OF_A_LIST else "")
    return {
        "flat": "Flat",
        "hnsw": f"HNSW{settings.n_links}",
        "ivf-sq8": f"{cells},SQ8",
        "ivf-pq": f"{cells},PQ{2 * settings.code_bytes}x4fs",
    }[settings.kind]


def _matches(index: Any, settings: IndexSettings, width: int) -> bool:  # noqa: ANN401 - a compiled class
    kind = type(index).__name__.removesuffix("IP")  # inner product, checked below as the metric
    if (kind, index.d, index.metric_type) != (TYPES[settings.kind], width, _faiss().METRIC_INNER_PRODUCT):
        return False
    if settings.kind == "hnsw":
        return bool(index.hnsw.nb_neighbors(0) == 2 * settings.n_links)
    if settings.kind == "ivf-pq" and 2 * settings.code_bytes != index.pq.M:
        return False
    return not settings.kind.startswith("ivf") or bool(index.nlist == settings.n_cells)


def _centers(rows: Vectors, n_cells: int) -> Vectors:
    """Cell centers, ``(n_cells, width)``, trained in two levels: large cells first, then cells within each.

    This takes about ``2 / sqrt(n_cells)`` of the time of a single level: a hundredth for 16,384 cells.
    """
    n_large = int(np.sqrt(n_cells))
    _, cells = _k_means(rows, n_large)
    shares = _shares(np.bincount(cells, minlength=n_large), n_cells).tolist()
    return np.concatenate([_k_means(rows[cells == cell], share)[0] for cell, share in enumerate(shares) if share])


def _shares(counts: Array, total: int) -> Array:
    """``total`` split into integers proportional to ``counts`` ``(n,)``, none above its count.

    >>> _shares(np.array([5, 0, 15]), 4).tolist()
    [1, 0, 3]
    """
    exact = counts * (total / counts.sum())
    shares: Array = np.floor(exact).astype(np.int64)
    for cell in np.argsort(shares - exact, kind="stable")[: total - shares.sum()]:
        shares[cell] += 1
    return shares


def _k_means(rows: Vectors, n_cells: int) -> tuple[Vectors, Array]:
    """Centers ``(n_cells, width)`` of length 1, and the cell of every row ``(n,)``."""
    faiss = _faiss()
    trained = faiss.Kmeans(
        rows.shape[1], n_cells, niter=ROUNDS, spherical=True, seed=0, min_points_per_centroid=LEAST_POINTS
    )
    trained.train(np.ascontiguousarray(rows))
    return trained.centroids, trained.index.search(rows, 1)[1].ravel()


def _faiss() -> ModuleType:
    return require("faiss", extra="search", feature="An approximate index")
