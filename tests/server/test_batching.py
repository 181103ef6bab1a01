"""The batcher alone: order, sharing, cancellation, errors, limits."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from twinvec.errors import InputError
from twinvec.server.batching import Batcher, Lane, QueueFullError


class Recorder:
    """A computation that can be held up and that records its batches."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def __call__(self, items):
        self.batches.append(list(items))
        self.started.set()
        self.gate.wait(10)
        if "bad" in items:
            raise InputError("A bad text.")
        return [item.upper() for item in items]

    @property
    def lane(self):
        return Lane("lane", self)

    def hold(self):
        self.gate.clear()
        self.started.clear()


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def batcher():
    batcher = Batcher(1, budget=100, wait_s=0.0, most=1000)
    yield batcher
    batcher.close()


async def held(recorder, batcher):
    """Occupy the worker, so that what follows waits in the queue."""
    recorder.hold()
    first = asyncio.create_task(batcher.run(recorder.lane, ["first"], [1]))
    await asyncio.to_thread(recorder.started.wait, 5)
    return first


def test_requests_share_batches_and_get_their_results_in_order(recorder, batcher):
    async def run():
        first = await held(recorder, batcher)
        many = [asyncio.create_task(batcher.run(recorder.lane, [f"a{i}", f"b{i}"], [2, 3])) for i in range(5)]
        await asyncio.sleep(0.05)
        recorder.gate.set()
        await first
        return await asyncio.gather(*many)

    assert asyncio.run(run()) == [[f"A{i}", f"B{i}"] for i in range(5)]
    assert len(recorder.batches) == 2


def test_identical_items_in_flight_are_computed_once(recorder, batcher):
    async def run():
        first = await held(recorder, batcher)
        same = [asyncio.create_task(batcher.run(recorder.lane, ["same", "same", "first"], [1, 1, 1])) for _ in range(9)]
        await asyncio.sleep(0.05)
        recorder.gate.set()
        await first
        return await asyncio.gather(*same)

    assert asyncio.run(run()) == [["SAME", "SAME", "FIRST"]] * 9
    assert recorder.batches == [["first"], ["same"]]


def test_short_texts_pass_the_rest_of_a_large_request_and_nothing_starves(recorder, batcher):
    async def run():
        first = await held(recorder, batcher)
        large = asyncio.create_task(batcher.run(recorder.lane, [f"long {i}" for i in range(20)], [60] * 20))
        await asyncio.sleep(0.02)
        short = asyncio.create_task(batcher.run(recorder.lane, ["short"], [2]))
        await asyncio.sleep(0.02)
        recorder.gate.set()
        await asyncio.gather(first, short, large)

    asyncio.run(run())
    order = [item for batch in recorder.batches for item in batch]
    assert len(order) == 22
    assert order.index("short") <= 8  # the first items of the large request were due before it came


def test_texts_of_different_length_do_not_share_a_batch(recorder):
    batcher = Batcher(1, budget=10_000, wait_s=0.0)

    async def run():
        first = await held(recorder, batcher)
        sizes = [3, 500, 5, 2000, 4]
        tasks = [asyncio.create_task(batcher.run(recorder.lane, [f"t{size}"], [size])) for size in sizes]
        await asyncio.sleep(0.02)
        recorder.gate.set()
        await asyncio.gather(first, *tasks)

    asyncio.run(run())
    batcher.close()
    assert sorted(map(sorted, recorder.batches[1:])) == [["t2000"], ["t3", "t4", "t5"], ["t500"]]


def test_a_cancelled_request_leaves_the_queue(recorder, batcher):
    async def run():
        first = await held(recorder, batcher)
        gone = asyncio.create_task(batcher.run(recorder.lane, ["gone", "kept"], [1, 1]))
        kept = asyncio.create_task(batcher.run(recorder.lane, ["kept"], [1]))
        await asyncio.sleep(0.02)
        gone.cancel()
        await asyncio.sleep(0.02)
        recorder.gate.set()
        assert await kept == ["KEPT"]
        await first

    asyncio.run(run())
    assert recorder.batches == [["first"], ["kept"]]
    assert batcher.n_waiting == 0


def test_a_bad_text_fails_only_its_own_request(recorder, batcher):
    async def run():
        first = await held(recorder, batcher)
        tasks = [asyncio.create_task(batcher.run(recorder.lane, [text], [1])) for text in ("good", "bad", "fine")]
        await asyncio.sleep(0.02)
        recorder.gate.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    good, bad, fine = asyncio.run(run())
    assert (good, fine) == (["GOOD"], ["FINE"])
    assert isinstance(bad, InputError)


def test_a_full_queue_says_when_to_come_back(recorder):
    batcher = Batcher(1, most=10, wait_s=0.0)

    async def run():
        first = await held(recorder, batcher)
        waiting = asyncio.create_task(batcher.run(recorder.lane, [f"{i}" for i in range(10)], [1] * 10))
        await asyncio.sleep(0.02)
        with pytest.raises(QueueFullError) as refused:
            await batcher.run(recorder.lane, ["one more"], [1])
        recorder.gate.set()
        await asyncio.gather(first, waiting)
        assert refused.value.retry_s > 0
        return await batcher.run(recorder.lane, ["now"], [1])

    assert asyncio.run(run()) == ["NOW"]
    batcher.close()


def test_closing_finishes_what_waits(recorder):
    batcher = Batcher(2, wait_s=5.0)

    async def run():
        tasks = [asyncio.create_task(batcher.run(recorder.lane, [f"t{i}"], [1])) for i in range(50)]
        await asyncio.sleep(0)
        await asyncio.to_thread(batcher.close)
        return await asyncio.gather(*tasks)

    started = time.monotonic()
    assert len(asyncio.run(run())) == 50
    assert time.monotonic() - started < 4
