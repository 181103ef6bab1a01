"""Engine settings, batch planning, padding, and parallel streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any, TypeVar, get_args

import numpy as np

from twinvec.choices import Device, LongPolicy, Precision, RuntimeName, UnknownPolicy
from twinvec.errors import InputError, check_name
from twinvec.types import Ids, Runtime, TokenBatch

__all__ = ["Engine", "EngineSettings", "Streams", "pad", "plan_batches", "plan_cheapest", "plan_equal", "plan_single"]

BATCH_TOKENS = 50  # a batch has a fixed cost like that of so much padding (MiniLM), which only attention computes
TOKENS_PER_BATCH = {"cpu": 512, "cuda": 16_384}  # 512: a batch's activations fit a core's cache


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of the engine, checked here once."""

    precision: Precision = "float32"
    threads: int | None = None
    device: Device = "cpu"
    runtime: RuntimeName = "auto"
    deterministic: bool = False
    long: LongPolicy = "warn"
    unknown: UnknownPolicy = "warn"

    def __post_init__(self) -> None:
        choices: dict[str, tuple[Any, object]] = {
            "precision": (Precision, self.precision),
            "device": (Device, self.device),
            "runtime": (RuntimeName, self.runtime),
            "long": (LongPolicy, self.long),
            "unknown": (UnknownPolicy, self.unknown),
        }
        for name, (known, value) in choices.items():
            check_name(name, value, get_args(known))
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise InputError(f"threads must be a whole number of at least 1, got {self.threads!r}.")
        if self.device == "cuda" and self.precision != "float32":
            raise InputError(f"precision={self.precision!r} runs on the CPU only.", hint="Use precision='float32'.")

    @property
    def n_streams(self) -> int:
        """Number of batches that run in parallel."""
        return 1 if self.device == "cuda" else self.threads or usable_cores()

    @property
    def tokens_per_batch(self) -> int:
        """Largest number of tokens in a batch, padding included."""
        return TOKENS_PER_BATCH[self.device]


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Engine:
    """A runtime with a loaded model, and the sizes of that model."""

    runtime: Runtime
    precision: Precision
    width: int
    n_vocabulary: int
    n_positions: int | None


def plan_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Group text indices, longest first, so that ``longest * count <= max_tokens`` in every batch.

    A text longer than ``max_tokens`` gets its own batch.

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
    """Group text indices, longest first, so that all texts of a batch have equal length: no padding.

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


def plan_cheapest(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Group text indices, longest first, so that padding and the fixed cost of each batch are least together.

    For few texts of many lengths, where equal lengths are rare: the fixed cost of a batch is that of ``BATCH_TOKENS``.

    >>> plan_cheapest([60, 8, 61, 9, 60], max_tokens=512)
    [[2, 0, 4], [3, 1]]
    """
    order = longest_first(lengths)
    least = [0] + [0] * len(order)  # of the first n texts of the order
    starts = [0] * (len(order) + 1)  # where the last batch of the first n texts starts
    for stop in range(1, len(order) + 1):
        least[stop] = least[stop - 1] + lengths[order[stop - 1]] + BATCH_TOKENS
        starts[stop] = stop - 1
        for start in range(stop - 2, -1, -1):
            n_tokens = lengths[order[start]] * (stop - start)
            if n_tokens > max_tokens:
                break
            if least[start] + n_tokens + BATCH_TOKENS < least[stop]:
                least[stop], starts[stop] = least[start] + n_tokens + BATCH_TOKENS, start
    batches: list[list[int]] = []
    stop = len(order)
    while stop:
        batches.append(order[starts[stop] : stop])
        stop = starts[stop]
    return batches[::-1]


def plan_single(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """One batch per text, longest first: the input of the runtime never depends on other texts.

    >>> plan_single([3, 4], max_tokens=512)
    [[1], [0]]
    """
    return [[index] for index in longest_first(lengths)]


def longest_first(lengths: Sequence[int]) -> list[int]:
    """Indices by decreasing length; equal lengths keep their order."""
    return sorted(range(len(lengths)), key=lambda index: -lengths[index])


def pad(
    rows: Sequence[Sequence[int] | Ids],
    n_unpooled: Sequence[int] = (),
    types: Sequence[Sequence[int]] | None = None,
) -> TokenBatch:
    """Pad rows of ids on the right. The first ``n_unpooled`` tokens of each row are not pooled.

    ``types`` are the token types of each row.

    >>> pad([[5, 6], [7]]).mask.tolist()
    [[1, 1], [1, 0]]
    """
    longest = max(len(row) for row in rows)
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    if types is not None:
        return TokenBatch(ids, mask, mask, pad(types).ids)
    if not any(n_unpooled):
        return TokenBatch(ids, mask, mask)
    pool_mask = mask.copy()
    for index, count in enumerate(n_unpooled):
        pool_mask[index, :count] = 0
    return TokenBatch(ids, mask, pool_mask)


Job = TypeVar("Job")
Result = TypeVar("Result")


LONGEST_BATCH_S = 60.0  # after an interrupt, wait this long for a batch that is running


class Streams:
    """Runs at most ``n`` batches in parallel, however many threads call."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._free = os.getpid(), BoundedSemaphore(n)

    def _slots(self) -> BoundedSemaphore:
        """The slots of this process: a forked child must not wait for its parent's threads."""
        process, slots = self._free
        if process != os.getpid():
            slots = BoundedSemaphore(self.n)
            self._free = os.getpid(), slots
        return slots

    def run(
        self, jobs: Iterator[Job], work: Callable[[Job], Result], consume: Callable[[Result], None] = lambda _: None
    ) -> None:
        """Do ``work`` for each job, and pass the result to ``consume``; only one thread at a time draws a job.

        Raises the first error. ``consume`` runs without holding a slot, so it may call ``run``, in any thread; ``work``
        may not.
        """
        draw, slots = Lock(), self._slots()
        errors: list[BaseException] = []

        def drain() -> None:
            try:
                while not errors:
                    with draw:
                        job = next(jobs, None)
                    if job is None:
                        return
                    with slots:
                        result = work(job)
                    consume(result)
            except BaseException as error:  # raised in the caller's thread below
                errors.append(error)

        first, second = next(jobs, None), next(jobs, None)
        if second is None:  # a single batch needs no extra thread
            jobs = iter(() if first is None else (first,))
            drain()
        else:
            jobs = chain((first, second), jobs)  # type: ignore[arg-type]
            self._drain_together(drain, errors)
        if errors:
            raise errors[0]

    def _drain_together(self, drain: Callable[[], None], errors: list[BaseException]) -> None:
        ended: list[Event] = []  # an interrupted Thread.join counts the thread as ended, so it cannot be joined again

        def start() -> None:
            end = Event()

            def drain_and_tell() -> None:
                try:
                    drain()
                finally:
                    end.set()

            ended.append(end)
            Thread(target=drain_and_tell, daemon=True).start()

        try:
            for _ in range(self.n - 1):
                start()
            drain()  # the caller's thread works too
            for end in ended:
                end.wait()
        except BaseException as error:  # an interrupt: the threads stop after their current batch
            errors.append(error)
            for end in ended:  # a thread inside onnxruntime when Python exits would abort the process
                end.wait(LONGEST_BATCH_S)
