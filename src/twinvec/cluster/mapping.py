"""Vectors on a plane: by their principal components, or by UMAP where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.cluster.checking import check_not_empty
from twinvec.errors import InputError, UnknownNameError
from twinvec.extras import require
from twinvec.search.rows import numeric_rows, unit_rows_of
from twinvec.types import Vectors

__all__ = ["Projection", "choose_projection", "map_vectors"]

Projection = Literal["auto", "pca", "umap"]

BLOCK_ROWS = 8192
FEWEST_FOR_UMAP = 4  # fewer have no graph of neighbours


def choose_projection(wanted: Projection, n: int) -> Literal["pca", "umap"]:
    """What ``auto`` stands for here, with ``n`` rows: UMAP where it is installed and can be used.

    Refuses at once what cannot be done.
    """
    if wanted not in get_args(Projection):
        raise UnknownNameError("projection", wanted, get_args(Projection))
    if wanted == "auto":
        return "umap" if find_spec("umap") and n >= FEWEST_FOR_UMAP else "pca"
    if wanted == "umap":
        require("umap", extra="map", feature="A map by UMAP")
        if n < FEWEST_FOR_UMAP:
            raise InputError(f"UMAP needs at least {FEWEST_FOR_UMAP} vectors, got {n}.", hint="Use pca.")
    return wanted


def map_vectors(vectors: ArrayLike, projection: Projection = "auto", *, seed: int = 0) -> NDArray[np.float32]:
    """A place on the plane for each of ``vectors`` ``(n, width)``: ``(n, 2)``. Near rows get near places."""
    rows = numeric_rows(vectors, "vectors")
    check_not_empty(rows)
    units = unit_rows_of(rows)
    if choose_projection(projection, len(units)) == "pca":
        return principal_places(units)
    umap = require("umap", extra="map", feature="A map by UMAP")
    reducer = umap.UMAP(n_neighbors=min(15, len(units) - 1), metric="cosine", random_state=seed, n_jobs=1)
    return np.asarray(reducer.fit_transform(units), dtype=np.float32)


def principal_places(rows: Vectors) -> NDArray[np.float32]:
    """The first two principal components of rows ``(n, width)``, as ``(n, 2)``.

    Their directions are those in which the rows' largest value is positive, so that a map does not turn over.

    >>> principal_places(np.array([[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]], dtype=np.float32)).round(3).tolist()
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
    places = np.zeros((len(rows), 2), dtype=np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        places[part, : two.shape[1]] = (rows[part] - mean) @ two
    return places
