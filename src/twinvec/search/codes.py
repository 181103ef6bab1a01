"""Vectors in fewer bits, searched block by block: int8 takes a quarter of the memory, sign bits one thirty-second.

Scores of codes approximate the cosines. If the vectors are passed as well, extra candidates are rescored exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least, check_name
from twinvec.search.exact import Hits, RunningHits, Workers, join_hits, no_hits
from twinvec.search.index import check_queries, rescored
from twinvec.search.measures import blocks_of, unit_block, unit_rows_of
from twinvec.types import Array, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["Codes", "encode_codes", "search_codes"]

CodeKind = Literal["int8", "binary"]

BLOCK_ROWS, QUERY_ROWS = 8192, 512
STEPS = 127  # int8 steps on each side of zero
WORD = 8  # bytes


@dataclass(frozen=True, slots=True)
class Codes:
    """Vectors of length 1 in fewer bits.

    ``int8``: ``values`` is ``(n, width)``, and ``steps`` ``(n,)`` is the step size of each row. ``binary``: ``values``
    is ``(n, width / 8)`` uint8, sign bits packed as by ``quantize_vectors(..., "ubinary")``, without ``steps``.
    """

    kind: CodeKind
    values: Array
    width: int
    steps: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        check_name("kind of codes", self.kind, get_args(CodeKind))
        shape = (len(self.values), self.width if self.kind == "int8" else -(-self.width // 8))
        dtype = np.int8 if self.kind == "int8" else np.uint8
        if self.values.shape != shape or self.values.dtype != dtype:
            raise InputError(
                f"{self.kind} codes of width {self.width} must be {np.dtype(dtype)} of shape {shape}, "
                f"got {self.values.dtype} of shape {self.values.shape}."
            )
        if self.kind == "int8" and (self.steps is None or self.steps.shape != (len(self.values),)):
            raise InputError("int8 codes need a step size for every row.", hint="Create them with encode_codes.")

    def __len__(self) -> int:
        return len(self.values)


def encode_codes(vectors: ArrayLike, kind: CodeKind) -> Codes:
    """Encode vectors ``(n, width)``, scaled to length 1, in fewer bits. Memory-mapped files are read block by block."""
    array = numeric_rows(vectors, "vectors")
    check_name("kind of codes", kind, get_args(CodeKind))
    width = array.shape[1]
    units = (unit_block(block.rows, block.lengths) for block in blocks_of(array, BLOCK_ROWS))
    if kind == "binary":
        packed = [np.packbits(rows > 0, axis=1) for rows in units]
        return Codes("binary", np.concatenate([np.empty((0, -(-width // 8)), dtype=np.uint8), *packed]), width)
    values, steps = np.empty(array.shape, dtype=np.int8), np.empty(len(array), dtype=np.float32)
    for start, rows in zip(range(0, len(array), BLOCK_ROWS), units, strict=True):
        part = slice(start, start + len(rows))
        steps[part] = np.abs(rows).max(axis=1, initial=0) / STEPS
        values[part] = np.rint(rows / np.where(steps[part] == 0, 1, steps[part])[:, None])
    return Codes("int8", values, width, steps)


def search_codes(
    queries: ArrayLike, codes: Codes, *, k: int = 10, vectors: Array | None = None, oversample: int = 4
) -> Hits:
    """The ``k`` nearest codes for each query ``(n, width)``, by approximate cosine, best first.

    With ``vectors``, from which the codes were made (a memory-mapped file works), ``oversample`` times as many
    candidates are rescored exactly; the scores are then cosines.

    >>> codes = encode_codes([[0.0, 1.0], [2.0, 0.1], [1.0, 1.0]], "int8")
    >>> search_codes([1.0, 0.1], codes, k=2).ids.tolist()
    [[1, 2]]
    """
    rows = unit_rows_of(check_queries(queries, codes.width), "queries")
    check_at_least(1, k=k, oversample=oversample)
    if vectors is not None and len(vectors) != len(codes):
        raise InputError(
            f"Got {len(vectors)} vectors for {len(codes)} codes.", hint="Pass the vectors the codes were made from."
        )
    n_wanted = min(k if vectors is None else k * oversample, len(codes))
    starts = range(0, max(len(rows), 1), QUERY_ROWS)
    with Workers() as workers:
        parts = [_search_part(rows[start : start + QUERY_ROWS], codes, n_wanted, workers=workers) for start in starts]
    found = join_hits(parts)
    return found if vectors is None else rescored(rows, found.ids, vectors, k=k)


def _search_part(queries: Vectors, codes: Codes, k: int, *, workers: Workers) -> Hits:
    running = RunningHits(len(queries), k)
    slack = np.zeros(len(queries), dtype=np.float32)  # ties of codes are not rescored
    if not (len(queries) and k):
        return no_hits(len(queries), k)
    score = _int8_scores if codes.kind == "int8" else _binary_scores
    for start, scores in score(queries, codes, workers):
        running.add(scores, start, slack)
    return running.best(slack)


def _int8_scores(queries: Vectors, codes: Codes, workers: Workers) -> Iterator[tuple[int, Vectors]]:
    assert codes.steps is not None
    for start in range(0, len(codes), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        yield start, (queries @ codes.values[part].astype(np.float32).T) * codes.steps[part]


def _binary_scores(queries: Vectors, codes: Codes, workers: Workers) -> Iterator[tuple[int, Vectors]]:
    """Cosines of the signs: 1 minus twice the share of differing bits."""
    wanted = _words(np.packbits(queries > 0, axis=1))  # (words, queries)
    for start in range(0, len(codes), BLOCK_ROWS):
        words = _words(codes.values[start : start + BLOCK_ROWS])  # (words, rows)
        scores = np.empty((len(queries), words.shape[1]), dtype=np.float32)

        def compare(part: slice, words: Array = words, scores: Vectors = scores) -> None:
            for query in range(part.start, part.stop):
                differing = np.zeros(words.shape[1], dtype=np.uint16)
                for word, other in zip(words, wanted[:, query], strict=True):
                    differing += count_bits(word ^ other)
                scores[query] = differing

        workers.map(compare, workers.split(len(queries)))
        yield start, 1 - scores * np.float32(2 / codes.width)


def _words(values: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Bytes ``(n, m)`` as 64-bit words, ``(m / 8, n)``, padded with zeros."""
    padded = np.zeros((len(values), -(-values.shape[1] // WORD) * WORD), dtype=np.uint8)
    padded[:, : values.shape[1]] = values
    return np.ascontiguousarray(padded.view(np.uint64).T)


def count_bits(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The number of set bits in each word, ``(n,)`` to ``(n,)``.

    >>> count_bits(np.array([0, 5, 2**64 - 1], dtype=np.uint64)).tolist()
    [0, 2, 64]
    """
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words))
    return np.asarray(_bit_table()[words.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.uint8))


@cache
def _bit_table() -> NDArray[np.uint8]:
    """The number of set bits of every uint16, for numpy before 2.0."""
    numbers = np.arange(1 << 16, dtype=np.uint16)
    return np.asarray(np.unpackbits(numbers.view(np.uint8)).reshape(-1, 16).sum(axis=1, dtype=np.uint8))
