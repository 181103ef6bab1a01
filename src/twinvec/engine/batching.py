"""Which texts run together: policies as pure functions, and the padding of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinvec.types import Ids, TokenBatch

__all__ = ["pad", "plan_batches", "plan_equal", "plan_single"]


def plan_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Group text indices, longest first, so that ``longest * count <= max_tokens`` in every batch.

    A text longer than ``max_tokens`` gets a batch of its own.

    >>> plan_batches([3, 9, 4, 8], max_tokens=16)
    [[1], [3, 2], [0]]
    """
    batches: list[list[int]] = []
    longest = 0
    for index in longest_first(lengths):
        if batches and longest * (len(batches[-1]) + 1) <= max_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = lengths[index]
    return batches


def plan_equal(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Group text indices, longest first, so that all texts of a batch are equally long: nothing is padded.

    >>> plan_equal([3, 4, 3, 4, 3], max_tokens=8)
    [[1, 3], [0, 2], [4]]
    """
    batches: list[list[int]] = []
    for index in longest_first(lengths):
        length = lengths[index]
        if batches and lengths[batches[-1][0]] == length and length * (len(batches[-1]) + 1) <= max_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def plan_single(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Every text alone, longest first: what the runtime sees of a text depends on nothing else.

    >>> plan_single([3, 4], max_tokens=512)
    [[1], [0]]
    """
    return [[index] for index in longest_first(lengths)]


def longest_first(lengths: Sequence[int]) -> list[int]:
    """Indices by falling length; equal lengths keep their order."""
    return sorted(range(len(lengths)), key=lambda index: -lengths[index])


def pad(rows: Sequence[Sequence[int] | Ids], n_unpooled: Sequence[int] = ()) -> TokenBatch:
    """Pad rows of ids on the right. ``n_unpooled`` of each row's first tokens are hidden from the pooling.

    >>> pad([[5, 6], [7]]).mask.tolist()
    [[1, 1], [1, 0]]
    """
    longest = max(len(row) for row in rows)
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    if not any(n_unpooled):
        return TokenBatch(ids, mask, mask)
    pool_mask = mask.copy()
    for place, count in enumerate(n_unpooled):
        pool_mask[place, :count] = 0
    return TokenBatch(ids, mask, pool_mask)
