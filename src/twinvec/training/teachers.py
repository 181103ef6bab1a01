"""The vectors or margins of teachers, computed once and cached on disk.

Vectors go to the same vector cache as those of evaluations, a few thousand at a time, so a crash loses little, and
another run over some of the same texts, with another student or seed, embeds only new texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from twinvec.choices import Precision
from twinvec.data.examples import Examples
from twinvec.data.write import write_vectors
from twinvec.embedder import TEXTS_PER_CALL, CachedEmbedder, ModelEmbedder
from twinvec.errors import TrainingError
from twinvec.files import mapped_vectors, new_file
from twinvec.pairs.cross_encoder import CrossEncoder, load_scorer
from twinvec.training.processes import Processes
from twinvec.types import Ids, Vectors
from twinvec.vector_store import VectorStore, cache_folder, text_key
from twinvec.vectors import unit_rows

__all__ = [
    "PrincipalVectors",
    "file_name",
    "joined_vectors",
    "principal_axes",
    "similar_groups",
    "teacher_margins",
    "teacher_vectors",
]

N_SPLIT = 64  # values of a vector that similar_groups looks at


def teacher_vectors(
    teachers: Sequence[str], texts: Sequence[str], *, precision: Precision, work: Path, processes: Processes
) -> tuple[Vectors, ...]:
    """The vectors of all texts by each teacher, ``(texts, width)``, memory-mapped from files in ``work``."""
    paths = []
    for name in teachers:
        teacher = ModelEmbedder(name, {"precision": precision, "long": "cut"})
        paths.append(work / f"teacher-{file_name(teacher.identity, texts)}.npy")
        processes.first(partial(_make, teacher, texts, path=paths[-1]))
    found = tuple(mapped_vectors(path, hint="Start over with --force.") for path in paths)
    for path, vectors in zip(paths, found, strict=True):
        if len(vectors) != len(texts) or vectors.dtype != np.float32:
            raise TrainingError(f"{path} does not hold vectors of {len(texts)} texts.", hint="Start over with --force.")
    return found


@dataclass(frozen=True, slots=True)
class Axes:
    """A teacher's mean vector ``(width,)`` and principal axes ``(width, width)``, the one with most variance first."""

    mean: Vectors
    axes: Vectors


def principal_axes(vectors: Vectors) -> Axes:
    """The mean and the principal axes of the unit rows of ``vectors``, ``(n, width)``; read block by block.

    >>> principal_axes(np.array([[0.6, 0.8], [0.6, -0.8]])).axes.round(6).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    width = vectors.shape[1]
    total, products = np.zeros(width), np.zeros((width, width))
    for start in range(0, len(vectors), TEXTS_PER_CALL):
        rows = unit_rows(np.asarray(vectors[start : start + TEXTS_PER_CALL], dtype=np.float32)).astype(np.float64)
        total += rows.sum(axis=0)
        products += rows.T @ rows
    mean = total / len(vectors)
    _, axes = np.linalg.eigh(products / len(vectors) - np.outer(mean, mean))
    axes = axes[:, ::-1]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])  # of an axis: its largest value is above 0
    return Axes(mean.astype(np.float32), np.ascontiguousarray(axes * signs, dtype=np.float32))


@dataclass(frozen=True, slots=True)
class PrincipalVectors:
    """A teacher's vectors, centered and turned to its principal axes when they are read."""

    vectors: Vectors
    axes: Axes

    @property
    def shape(self) -> tuple[int, ...]:
        """``(texts, width)``."""
        return self.vectors.shape

    def __getitem__(self, rows: Ids) -> Vectors:
        """Some vectors, as unit rows."""
        turned = (unit_rows(self.vectors[rows]) - self.axes.mean) @ self.axes.axes
        return unit_rows(np.asarray(turned, dtype=np.float32))


def similar_groups(vectors: Vectors | PrincipalVectors, size: int) -> Ids:
    """Group numbers, ``(n,)``, so that similar vectors share a group of at most ``size``.

    All vectors are split in half at the median of the axis on which they differ most, then each half, and so on.
    On principal axes, the first values of a vector are enough.

    >>> similar_groups(np.array([[0.0], [5.0], [0.1], [5.1]]), 2).tolist()
    [0, 1, 0, 1]
    """
    n = vectors.shape[0]
    starts = range(0, n, TEXTS_PER_CALL)
    parts = [np.asarray(vectors[np.arange(i, min(i + TEXTS_PER_CALL, n))])[:, :N_SPLIT] for i in starts]
    values = np.concatenate(parts).astype(np.float64)
    groups = np.zeros(n, dtype=np.int64)
    while n and (counts := np.bincount(groups)).max() > size:
        order = np.argsort(groups, kind="stable")
        first = np.cumsum(counts) - counts
        mean = np.add.reduceat(values[order], first) / counts[:, None]
        squares = np.add.reduceat(values[order] ** 2, first) / counts[:, None]
        axis = (squares - mean**2).argmax(axis=1)
        order = np.lexsort((values[np.arange(n), axis[groups]], groups))
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(n) - np.repeat(first, counts)
        groups = 2 * groups + (rank >= (counts[groups] + 1) // 2)
        _, groups = np.unique(groups, return_inverse=True)
    return groups


def teacher_margins(
    teachers: Sequence[str], examples: Examples, *, precision: Precision, work: Path, processes: Processes
) -> Vectors:
    """The margins of triplets by cross-encoders, ``(n,)``: the score of the positive minus that of the negative.

    Scores are logits; several teachers are averaged. They are kept in a file in ``work``.
    """
    total = np.zeros(len(examples), dtype=np.float64)
    for name in teachers:
        teacher = load_scorer(name, precision=precision, activation="none", long="cut")
        assert isinstance(teacher, CrossEncoder)  # load_scorer refuses an activation for other scorers
        teacher.check_single()
        path = work / f"teacher-{file_name(teacher.identity, [examples.digest()])}.npy"
        processes.first(partial(_make_margins, teacher, examples, path=path))
        margins = np.asarray(mapped_vectors(path, hint="Start over with --force."))
        if margins.shape != (len(examples), 1):
            raise TrainingError(f"{path} does not hold the margins of {len(examples)} triplets.")
        total += margins[:, 0]
    return np.asarray(total / len(teachers), dtype=np.float32)


def _make_margins(teacher: CrossEncoder, examples: Examples, *, path: Path) -> None:
    if path.is_file():
        return
    anchor, positive, negative = (examples.indices[role] for role in ("anchor", "positive", "negative"))
    texts = examples.texts
    near, far = (
        teacher.score([(texts[i], texts[j]) for i, j in zip(anchor, other, strict=True)])
        for other in (positive, negative)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, replace=True) as file:
        np.save(file, (near - far)[:, None].astype(np.float32))


def joined_vectors(parts: Sequence[Vectors]) -> Vectors:
    """Concatenate the teachers' vectors as unit rows, so that cosines are the mean of the teachers' cosines.

    >>> joined_vectors([np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])]).tolist()
    [[1.0, 0.0, 0.0, 1.0]]
    """
    if len(parts) == 1:
        return np.array(parts[0], dtype=np.float32)
    return np.concatenate([unit_rows(part) for part in parts], axis=1)


def _make(teacher: ModelEmbedder, texts: Sequence[str], *, path: Path) -> None:
    if path.is_file():
        return
    cached = CachedEmbedder(teacher, cache_folder())
    cached.prepare(texts)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_vectors(_rows(cached.store, texts), path)


def _rows(store: VectorStore, texts: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
    for start in range(0, len(texts), TEXTS_PER_CALL):
        part = texts[start : start + TEXTS_PER_CALL]
        yield from zip(part, store.of(part), strict=True)


def file_name(identity: str, texts: Sequence[str]) -> str:
    """A unique name for one teacher's vectors of these texts."""
    state = hashlib.sha256(identity.encode())
    for text in texts:
        state.update(text_key(text))
    return state.hexdigest()[:16]
