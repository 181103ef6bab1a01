"""Vectors for the search benchmarks: of real texts, and any number of perturbed ones.

A perturbed vector is the vector of a real text plus Gaussian noise, normalized to length 1. The noise has the
covariance of the real vectors ("real"), or is the same in all directions ("even"), which is unlike texts and harder
for every index. Rows are generated from a seed on demand, so that a set may be larger than memory and disk.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

import twinvec
from twinvec.search.exact import Workers
from twinvec.types import Vectors

ENGLISH = ("argument", "nli", "search", "sts", "transfer")
PIECE = 1024  # rows per seed
HELD_OUT = 2_000  # real texts that only queries are made from

Shape = Literal["real", "even"]


def real_texts(data: Path | None) -> tuple[list[str], str]:
    """All distinct English texts of three or more words, in seeded order; without the data, docstring sentences."""
    if data is None or not (data / "nli").is_dir():
        from twinvec.data.sentences import gather_sentences

        return gather_sentences(10_000), "docstrings of Python's standard library"
    found: dict[str, None] = {}
    for file in sorted(file for name in ENGLISH for file in (data / name).glob("*.tsv.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                found.update((cell, None) for cell in line.rstrip("\n").split("\t") if cell.count(" ") >= 2)
    texts = sorted(found)
    random.Random(0).shuffle(texts)
    return texts, "different texts of the NLI, STS, transfer, argument and search sets, seed 0"


def real_vectors(texts: list[str], model: str, folder: Path) -> Vectors:
    """Unit vectors ``(n, width)`` of the texts, computed once, stored in the folder and memory-mapped."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"real-{Path(model).name}-{len(texts)}.npy"
    if not path.exists():
        print(f"embedding {len(texts):,} texts with {Path(model).name}", file=sys.stderr)
        vectors = twinvec.load(model, long="cut").encode(texts)
        partial = path.with_suffix(".partial.npy")
        np.save(partial, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        partial.rename(path)
    loaded: Vectors = np.load(path, mmap_mode="r")
    return loaded


@dataclass(frozen=True)
class Perturbed:
    """``n`` unit vectors, each of a real text plus noise of length about ``noise``.

    ``twinvec.search.build_index`` can read it: ``source[a:b]`` is ``(b - a, width)``.
    """

    base: Vectors = field(repr=False)
    n: int
    noise: float = 0.5
    noise_shape: Shape = "real"
    seed: int = 0
    _mixing: Vectors | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.noise_shape == "real":
            object.__setattr__(self, "_mixing", _mixing(self.base))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, width)``."""
        return self.n, self.base.shape[1]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice, /) -> Vectors:
        start, stop, step = rows.indices(self.n)
        assert step == 1, "only contiguous rows"
        pieces = range(start // PIECE, -(-stop // PIECE))
        with Workers() as workers:
            made: Vectors = np.concatenate(
                [np.empty((0, self.shape[1]), np.float32), *workers.map(self._piece, pieces)]
            )
        first = pieces.start * PIECE
        return np.array(made[start - first : stop - first])  # a view would keep all pieces in memory

    def blocks(self, n_rows: int, start: int = 0) -> Iterator[tuple[int, Vectors]]:
        """All rows from ``start`` on, in blocks of ``n_rows``, each with the index of its first row."""
        for first in range(start, self.n, n_rows):
            yield first, self[first : min(first + n_rows, self.n)]

    def facts(self) -> dict[str, Any]:
        """The description of the set for a result file."""
        cosines = np.concatenate([self._cosines_to_base(piece) for piece in range(min(16, -(-self.n // PIECE)))])
        return {
            "n_vectors": self.n,
            "width": self.shape[1],
            "n_real": len(self.base),
            "noise_length": self.noise,
            "noise_shape": self.noise_shape,
            "cosine_to_real": [round(float(value), 3) for value in np.percentile(cosines, [5, 50, 95])],
            "seed": self.seed,
        }

    def _piece(self, number: int) -> Vectors:
        return self._made(number)[1]

    def _made(self, number: int) -> tuple[Vectors, Vectors]:
        """The real and the perturbed vectors of one piece, ``(PIECE, width)`` each."""
        rng = np.random.default_rng([self.seed, number])
        real = self.base[rng.integers(len(self.base), size=PIECE)]
        noise = rng.standard_normal((PIECE, self.shape[1]), dtype=np.float32)
        noise = noise / np.float32(np.sqrt(self.shape[1])) if self._mixing is None else noise @ self._mixing
        rows = real + np.float32(self.noise) * noise
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return real, rows

    def _cosines_to_base(self, number: int) -> Vectors:
        real, rows = self._made(number)
        cosines: Vectors = np.einsum("ij,ij->i", real, rows)
        return cosines


def _mixing(base: Vectors) -> Vectors:
    """A matrix ``(width, width)`` that gives white noise the covariance of ``base`` and a mean square length of 1.

    >>> _mixing(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], dtype=np.float32)).round(3).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    some = np.asarray(base[:50_000], dtype=np.float64)
    covariance = np.cov(some, rowvar=False, bias=True)
    values, directions = np.linalg.eigh(covariance / np.trace(covariance))
    root = (directions * np.sqrt(np.clip(values, 0, None))) @ directions.T
    return np.asarray(root, dtype=np.float32)
