"""What the student learns from: the similarities of English teachers, and of the encoder that it starts from.

Teachers differ in how much their cosines spread. Each one's vectors are centered by their mean over the training texts
and scaled to unit length before they are joined, so that each has an equal part in the cosine of the joined vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinvec.baselines.use import UseEmbedder
from twinvec.embedder import CachedEmbedder, ModelEmbedder
from twinvec.search.exact import search
from twinvec.types import Vectors
from twinvec.vectors import unit_rows

__all__ = ["Pool", "blend", "make_pool", "own_vectors", "teacher_vectors"]

N_NEIGHBORS = 16


class Pool:
    """Texts with the vectors of their teacher, ``(texts, width)``, and the nearest others of each.

    ``chances`` are those of the texts to be drawn, with the sum 1; without them, all are alike.
    """

    def __init__(
        self, vectors: Vectors, neighbors: NDArray[np.int64], chances: NDArray[np.float64] | None = None
    ) -> None:
        self.vectors, self.neighbors, self.chances = vectors, neighbors, chances

    def __len__(self) -> int:
        return len(self.vectors)

    def draw(self, n: int, group: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Up to ``n`` different texts: some at random, each with ``group - 1`` of its neighbors.

        Texts at random are nearly all unlike each other, and teach little about those that are alike.
        """
        first = random.choice(len(self), size=-(-n // group), replace=False, p=self.chances)
        columns = random.permuted(np.tile(np.arange(self.neighbors.shape[1]), (len(first), 1)), axis=1)[:, : group - 1]
        near = np.take_along_axis(self.neighbors[first], columns, axis=1)
        return np.fromiter(dict.fromkeys(np.concatenate([first[:, None], near], axis=1).ravel().tolist()), np.int64)[:n]


def make_pool(vectors: Vectors, chances: NDArray[np.float64] | None = None) -> Pool:
    """A pool of texts with the neighbors that they have in it."""
    k = min(N_NEIGHBORS + 1, len(vectors))
    found = search(vectors, vectors, k=k).ids
    own = np.arange(len(vectors))[:, None]
    others = np.argsort(found == own, axis=1, kind="stable")[:, : k - 1]  # itself last, wherever it was
    return Pool(vectors, np.take_along_axis(found, others, axis=1).astype(np.int64), chances)


def teacher_vectors(teachers: Sequence[str], texts: Sequence[str], cache: Path) -> Vectors:
    """The joined vectors of several sentence models; those of each are kept in a cache folder."""
    found = [CachedEmbedder(ModelEmbedder(name, {"precision": "int8", "long": "cut"}), cache) for name in teachers]
    return blend([each.embed(texts) for each in found])


def blend(parts: Sequence[Vectors]) -> Vectors:
    """Join centered vectors of unit length, so that cosines are the means of the teachers' centered cosines.

    >>> blend([np.array([[3.0, 1.0], [1.0, 1.0]]), np.array([[0.0], [1.0]])]).astype(float).round(3).tolist()
    [[0.707, 0.0, -0.707], [-0.707, 0.0, 0.707]]
    """
    centered = [unit_rows(part - part.mean(axis=0)) for part in parts]
    return unit_rows(np.concatenate(centered, axis=1))


def own_vectors(folder: Path, texts: Sequence[str], cache: Path) -> Vectors:
    """The vectors that the student has before training."""
    return CachedEmbedder(UseEmbedder(folder), cache).embed(texts)
