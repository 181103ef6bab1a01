"""Batches across clients: texts of many requests run together, in a fair order, in a few threads.

Each item (a text, or a pair of texts) waits in the queue of its lane. A lane is one model with one prompt, and items of
similar length: so a batch needs little padding, and short texts never wait for a long one in their batch. A worker
thread takes the lane whose first item is due first. An item is due when it arrived, plus the time that its request
needs up to this item: a short request passes the rest of a large one, and no item waits forever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from typing import Any

from twinvec.errors import TwinvecError

__all__ = ["Batcher", "Lane", "QueueFullError"]

QueueKey = tuple[Hashable, int]  # a lane, and how long its texts are
S_PER_TOKEN = 1e-4  # only decides the order
LOOK_AHEAD = 96  # items
LONG = 64, 256, 1024  # tokens; texts between two of them share a queue


class QueueFullError(Exception):
    """Too many texts wait. ``retry_s`` is an estimate of when there is room."""

    def __init__(self, retry_s: float) -> None:
        super().__init__("The queue is full.")
        self.retry_s = retry_s


@dataclass(frozen=True)
class Lane:
    """Items that can share a batch: ``compute`` takes a list of them and returns one result each."""

    key: Hashable
    compute: Callable[[list[Any]], Sequence[Any]] = field(compare=False)


class Ticket:
    """One request: its results so far, and the future that its caller awaits."""

    __slots__ = ("future", "n_missing", "results")

    def __init__(self, future: asyncio.Future[list[Any]], n_items: int) -> None:
        self.future = future
        self.results: list[Any] = [None] * n_items
        self.n_missing = n_items


class Job:
    """One item in flight, and the places in requests that wait for its result."""

    __slots__ = ("item", "size", "waiters")

    def __init__(self, item: Hashable, size: int) -> None:
        self.item = item
        self.size = size
        self.waiters: list[tuple[Ticket, int]] = []

    @property
    def is_wanted(self) -> bool:
        """Whether some caller still waits."""
        return any(not ticket.future.done() for ticket, _ in self.waiters)


class Queue:
    """The waiting items of a lane and length, by due time."""

    __slots__ = ("arrived", "heap", "lane", "size")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.heap: list[tuple[float, int, Job]] = []
        self.size = 0  # of all items, in tokens
        self.arrived = 0.0  # when its first item came

    def take(self, budget: int) -> list[Job]:
        """Remove the item that is due first, and those of the next ones that are most like it in length.

        They have at most ``budget`` tokens together, if they are more than one.
        """
        entries = [heappop(self.heap) for _ in range(min(len(self.heap), LOOK_AHEAD))]
        first = entries[0][2].size
        entries.sort(key=lambda entry: abs(entry[2].size - first))  # stable: the first stays first
        jobs: list[Job] = []
        room = budget
        for entry in entries:
            job = entry[2]
            if jobs and job.size > room:
                heappush(self.heap, entry)
                continue
            room -= job.size
            jobs.append(job)
        self.size -= budget - room
        return jobs


class Batcher:
    """Runs the items of all requests in ``n_workers`` threads, at most ``budget`` tokens at a time.

    If clients were just answered, a worker waits up to ``wait_s`` for their next requests, so that batches stay large;
    a client that is alone never waits. Identical items in flight are computed once.
    """

    def __init__(self, n_workers: int, *, budget: int = 256, wait_s: float = 0.002, most: int = 8192) -> None:
        self.n_waiting = 0  # distinct items in queues
        self.n_computed = 0
        self._budget, self._wait_s, self._most = budget, wait_s, most
        self._queues: dict[QueueKey, Queue] = {}
        self._jobs: dict[tuple[Hashable, Hashable], Job] = {}  # in queues and running
        self._changed = Condition()
        self._numbers = count()
        self._expected = 0  # requests answered by the last batch, whose clients may be back soon
        self._finished_at = 0.0
        self._item_s = 0.001  # seconds per item, averaged
        self._is_closed = False
        self._threads = [Thread(target=self._work, name=f"batch-{i}", daemon=True) for i in range(n_workers)]
        for thread in self._threads:
            thread.start()

    async def run(self, lane: Lane, items: Sequence[Hashable], sizes: Sequence[int]) -> list[Any]:
        """The results of some items, in order; ``sizes`` are estimates in tokens. Raises QueueFullError."""
        if not items:
            return []
        ticket = Ticket(asyncio.get_running_loop().create_future(), len(items))
        with self._changed:
            if self.n_waiting + len(items) > max(self._most, len(items)):
                raise QueueFullError(self.n_waiting * self._item_s)
            self._enter(lane, items, sizes, ticket)
        try:
            return await ticket.future
        except asyncio.CancelledError:
            with self._changed:
                self._leave(lane, items, ticket)
            raise

    def close(self) -> None:
        """Finish what waits, and end the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _enter(self, lane: Lane, items: Sequence[Hashable], sizes: Sequence[int], ticket: Ticket) -> None:
        now = due = time.monotonic()
        n_before = self.n_waiting
        for index, (item, size) in enumerate(zip(items, sizes, strict=True)):
            due += size * S_PER_TOKEN
            job = self._jobs.get((lane.key, item))
            if job is None:
                job = self._jobs[lane.key, item] = Job(item, size)
                key = lane.key, sum(size > limit for limit in LONG)
                queue = self._queues.get(key)
                if queue is None:
                    queue = self._queues[key] = Queue(lane)
                    queue.arrived = now
                heappush(queue.heap, (due, next(self._numbers), job))
                queue.size += size
                self.n_waiting += 1
            job.waiters.append((ticket, index))
        self._changed.notify(min(len(self._threads), self.n_waiting - n_before))

    def _leave(self, lane: Lane, items: Sequence[Hashable], ticket: Ticket) -> None:
        """Remove a cancelled request from its items; those that nobody else wants are dropped when their turn comes."""
        for item in dict.fromkeys(items):
            job = self._jobs.get((lane.key, item))
            if job is not None:
                job.waiters = [waiter for waiter in job.waiters if waiter[0] is not ticket]

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            lane, jobs = taken
            start = time.monotonic()
            results = computed(lane, [job.item for job in jobs])
            now = time.monotonic()
            with self._changed:
                finished = [
                    ticket
                    for job, result in zip(jobs, results, strict=True)
                    for ticket in self._settle(lane, job, result)
                ]
                self.n_computed += len(jobs)
                self._item_s += 0.1 * ((now - start) / len(jobs) / len(self._threads) - self._item_s)
                self._expected, self._finished_at = len(finished), now
            if finished:
                finished[0].future.get_loop().call_soon_threadsafe(answer, finished)

    def _next(self) -> tuple[Lane, list[Job]] | None:
        """Wait for work; None when closed."""
        with self._changed:
            while True:
                key = min(self._queues, key=lambda each: self._queues[each].heap[0][0], default=None)
                if key is None and self._is_closed:
                    return None
                delay = None if key is None else self._delay(self._queues[key])
                if key is None or delay:
                    self._changed.wait(delay)
                else:
                    lane = self._queues[key].lane
                    if jobs := self._take(key):
                        return lane, jobs

    def _take(self, key: QueueKey) -> list[Job]:
        """Remove the next items from a queue; those that nobody wants any more are dropped."""
        queue = self._queues[key]
        jobs = queue.take(self._budget)
        self.n_waiting -= len(jobs)
        if not queue.heap:
            del self._queues[key]
        for job in jobs:
            if not job.is_wanted:
                self._jobs.pop((queue.lane.key, job.item), None)
        return [job for job in jobs if job.is_wanted]

    def _delay(self, queue: Queue) -> float:
        """How long to wait for more items before a batch starts."""
        if self._is_closed or queue.size >= self._budget or len(queue.heap) >= self._expected:
            return 0.0
        now = time.monotonic()
        if now - self._finished_at > self._wait_s:
            return 0.0
        return max(0.0, queue.arrived + self._wait_s - now)

    def _settle(self, lane: Lane, job: Job, result: object) -> list[Ticket]:
        """Hand a result to all that wait for it; the requests that are complete now."""
        self._jobs.pop((lane.key, job.item), None)
        finished = []
        for ticket, index in job.waiters:
            ticket.results[index] = result
            ticket.n_missing -= 1
            if ticket.n_missing == 0:
                finished.append(ticket)
        return finished


def computed(lane: Lane, items: list[Any]) -> Sequence[Any]:
    """The results of a batch. If it fails, each item runs alone: one bad text must not fail the other requests."""
    try:
        return lane.compute(items)
    except Exception as error:
        if len(items) == 1:
            return [error]
        if not isinstance(error, TwinvecError):
            return [error] * len(items)
        return [computed(lane, [item])[0] for item in items]


def answer(tickets: list[Ticket]) -> None:
    """Set the futures of complete requests; runs on the event loop."""
    for ticket in tickets:
        if ticket.future.done():
            continue
        failed = next((result for result in ticket.results if isinstance(result, Exception)), None)
        if failed is None:
            ticket.future.set_result(ticket.results)
        else:
            ticket.future.set_exception(failed)
