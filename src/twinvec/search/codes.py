"""Vectors in fewer bits, searched by blocks: int8 takes a quarter of the memory, sign bits a thirty-second.

Scores of codes are near the cosines, not equal to them; given the vectors themselves, more candidates than wanted are
taken and scored again exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least, check_name
from twinvec.search.exact import Hits, RunningHits, Workers, join_hits
from twinvec.search.index import check_queries, rescored
from twinvec.search.measures import blocks_of, unit_block, unit_rows_of
from twinvec.types import Array, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["Codes", "encode_codes", "search_codes"]

CodeKind = Literal["int8", "binary"]

BLOCK_ROWS, QUERY_ROWS = 8192, 512
STEPS = 127  # of int8, on each side of zero
WORD = 8  # bytes


@dataclass(frozen=True, slots=True)
class Codes:
    """Vectors of length 1 in fewer bits.

    ``int8``: ``values`` is ``(n, width)`` in steps of a row's own size, ``steps`` ``(n,)``. ``binary``: ``values``
    is ``(n, width / 8)`` as uint8, the sign bits as ``quantize_vectors(..., "ubinary")`` packs them; no steps.
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
                f"{self.kind} codes of width {self.width} are {np.dtype(dtype)} of shape {shape}, "
                f"got {self.values.dtype} of shape {self.values.shape}."
            )
        if self.kind == "int8" and (self.steps is None or self.steps.shape != (len(self.values),)):
            raise InputError("int8 codes need the size of a step for every row.", hint="Make them by encode_codes.")

    def __len__(self) -> int:
        return len(self.values)


def encode_codes(vectors: ArrayLike, kind: CodeKind) -> Codes:
    """Vectors ``(n, width)`` at length 1, in fewer bits; read by blocks, so they may be a memory-mapped file."""
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
    """The ``k`` nearest by cosine for each query ``(n, width)``, as far as codes can tell, best first.

    With ``vectors``, those the codes were made of (a memory-mapped file will do), ``oversample`` times as many are
    looked up and scored exactly; the scores are then cosines.

    >>> codes = encode_codes([[0.0, 1.0], [2.0, 0.1], [1.0, 1.0]], "int8")
    >>> search_codes([1.0, 0.1], codes, k=2).ids.tolist()
    [[1, 2]]
    """
    asked = unit_rows_of(check_queries(queries, codes.width), "queries")
    check_at_least(1, k=k, oversample=oversample)
    if vectors is not None and len(vectors) != len(codes):
        raise InputError(
            f"There are {len(vectors)} vectors for {len(codes)} codes.", hint="Give those they were made of."
        )
    n_wanted = min(k if vectors is None else k * oversample, len(codes))
    starts = range(0, max(len(asked), 1), QUERY_ROWS)
    with Workers() as workers:
        parts = [_search_part(asked[start : start + QUERY_ROWS], codes, n_wanted, workers=workers) for start in starts]
    found = join_hits(parts)
    return found if vectors is None else rescored(asked, found.ids, vectors, k=k)


def _search_part(asked: Vectors, codes: Codes, k: int, *, workers: Workers) -> Hits:
    running = RunningHits(len(asked), k)
    exact = np.zeros(len(asked), dtype=np.float32)  # these scores are what they are: there is nothing to settle
    if not (len(asked) and k):
        return Hits(np.empty((len(asked), k), dtype=np.int64), np.empty((len(asked), k), dtype=np.float32))
    score = _int8_scores if codes.kind == "int8" else _binary_scores
    for start, scores in score(asked, codes, workers):
        running.add(scores, start, exact)
    return running.best(exact)


def _int8_scores(asked: Vectors, codes: Codes, workers: Workers) -> Iterator[tuple[int, Vectors]]:
    assert codes.steps is not None
    for start in range(0, len(codes), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        yield start, (asked @ codes.values[part].astype(np.float32).T) * codes.steps[part]


def _binary_scores(asked: Vectors, codes: Codes, workers: Workers) -> Iterator[tuple[int, Vectors]]:
    """Cosines of the signs: 1 less twice the share of bits that differ."""
    wanted = _words(np.packbits(asked > 0, axis=1))  # (words, queries)
    for start in range(0, len(codes), BLOCK_ROWS):
        words = _words(codes.values[start : start + BLOCK_ROWS])  # (words, rows)
        scores = np.empty((len(asked), words.shape[1]), dtype=np.float32)

        def compare(part: slice, words: Array = words, scores: Vectors = scores) -> None:
            for query in range(part.start, part.stop):
                differing = np.zeros(words.shape[1], dtype=np.uint16)
                for word, other in zip(words, wanted[:, query], strict=True):
                    differing += count_bits(word ^ other)
                scores[query] = differing

        workers.map(compare, workers.split(len(asked)))
        yield start, 1 - scores * np.float32(2 / codes.width)


def _words(values: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Bytes ``(n, m)`` as words of 64 bits, ``(m / 8, n)``, filled up with zeros."""
    padded = np.zeros((len(values), -(-values.shape[1] // WORD) * WORD), dtype=np.uint8)
    padded[:, : values.shape[1]] = values
    return np.ascontiguousarray(padded.view(np.uint64).T)


def count_bits(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """How many bits of each word are set, ``(n,)`` to ``(n,)``.

    >>> count_bits(np.array([0, 5, 2**64 - 1], dtype=np.uint64)).tolist()
    [0, 2, 64]
    """
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words))
    return np.asarray(_bit_table()[words.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.uint8))


@cache
def _bit_table() -> NDArray[np.uint8]:
    """The bits that are set in each number below 2 ** 16: numpy counts them itself only since 2.0."""
    numbers = np.arange(1 << 16, dtype=np.uint16)
    return np.asarray(np.unpackbits(numbers.view(np.uint8)).reshape(-1, 16).sum(axis=1, dtype=np.uint8))
