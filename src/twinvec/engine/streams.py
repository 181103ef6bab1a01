"""Runs batches on several streams: one thread per core, each taking the next batch as it comes free.

Threads live for one call only, so nothing is left behind that a fork could break.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from threading import BoundedSemaphore, Lock, Thread
from typing import TypeVar

__all__ = ["Streams"]

Job = TypeVar("Job")
Result = TypeVar("Result")


class Streams:
    """At most ``n`` batches run at once, however many threads call."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._free = os.getpid(), BoundedSemaphore(n)

    def _slots(self) -> BoundedSemaphore:
        """The places of this process: a child must not wait for its parent's threads."""
        process, slots = self._free
        if process != os.getpid():
            slots = BoundedSemaphore(self.n)
            self._free = os.getpid(), slots
        return slots

    def run(
        self, jobs: Iterator[Job], work: Callable[[Job], Result], show: Callable[[Result], None] = lambda _: None
    ) -> None:
        """Do ``work`` for every job, and ``show`` what it gave; jobs are drawn by one thread at a time.

        The first error is raised here. ``show`` runs while no place is held, so it may call ``run`` itself, in any
        thread; ``work`` may not.
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
                    show(result)
            except BaseException as error:  # handed to the caller's thread below
                errors.append(error)

        first, second = next(jobs, None), next(jobs, None)
        if second is None:  # one batch needs no other thread
            jobs = iter(() if first is None else (first,))
            drain()
        else:
            jobs = chain((first, second), jobs)  # type: ignore[arg-type]
            self._drain_together(drain, errors)
        if errors:
            raise errors[0]

    def _drain_together(self, drain: Callable[[], None], errors: list[BaseException]) -> None:
        helpers = [Thread(target=drain, daemon=True) for _ in range(self.n - 1)]
        for helper in helpers:
            helper.start()
        drain()  # the caller's thread works too
        try:
            for helper in helpers:
                helper.join()
        except BaseException as error:  # an interrupt: the helpers stop after the batch they are at
            errors.append(error)
