"""Work on parts of a block in threads: numpy lets go of Python's lock while it compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any, TypeVar

from twinvec.engine.settings import usable_cores

__all__ = ["Workers", "equal_parts"]

Result = TypeVar("Result")

FEWEST = 64  # rows; fewer are not worth a thread


class Workers:
    """One thread for each core, within a ``with`` block."""

    def __init__(self) -> None:
        self._n_threads = usable_cores()
        self._pool = ThreadPoolExecutor(self._n_threads)  # starts its threads only when there is work

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()

    def split(self, n: int) -> list[slice]:
        """Slices of ``n`` rows, one for each thread; one in all if there are few."""
        return equal_parts(n, min(self._n_threads, n // FEWEST))

    def map(self, work: Callable[..., Result], *items: Iterable[Any]) -> list[Result]:
        """The results of some work, done at once, in order."""
        calls = list(zip(*items, strict=True))
        if len(calls) == 1:
            return [work(*calls[0])]
        return list(self._pool.map(lambda call: work(*call), calls))


def equal_parts(n: int, n_parts: int) -> list[slice]:
    """Slices of about equal length that cover ``n`` rows; one at least, and none empty unless there are no rows.

    >>> equal_parts(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    n_parts = max(1, min(n_parts, n))
    ends = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]
