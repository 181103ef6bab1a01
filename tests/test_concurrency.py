"""One encoder under threads, asyncio and fork, and bits that do not depend on them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest

import twinvec
from tiny import WORDS
from twinvec.engine.batches import Streams

TEXTS = [" ".join(WORDS[i % 7 : i % 19 + 2]) for i in range(120)]


def runtimes():
    return [name for name in ("onnxruntime", "openvino") if find_spec(name)]


@pytest.fixture(params=runtimes())
def shared(request, tiny_bert):
    return twinvec.load(tiny_bert, runtime=request.param, threads=2)


def test_many_threads_share_one_encoder(shared):
    expected = shared.encode(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: shared.encode(TEXTS), range(24)))
    for result in results:
        np.testing.assert_allclose(result, expected, atol=2e-6)


def test_asyncio_tasks_share_one_encoder(shared):
    expected = shared.encode(TEXTS)

    async def main():
        return await asyncio.gather(*(asyncio.to_thread(shared.encode, TEXTS) for _ in range(8)))

    for result in asyncio.run(main()):
        np.testing.assert_allclose(result, expected, atol=2e-6)


def child(encoder, connection):
    connection.send(encoder.encode(TEXTS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_can_encode(shared):
    expected = shared.encode(TEXTS)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(shared, sender))
    process.start()
    try:
        assert receiver.poll(60), "the forked child hangs"
        np.testing.assert_allclose(receiver.recv(), expected, atol=2e-6)
    finally:
        process.kill()
        process.join()
    np.testing.assert_allclose(shared.encode(TEXTS), expected, atol=2e-6)


def test_no_more_batches_run_at_once_than_there_are_streams():
    streams, lock, running, most = Streams(2), threading.Lock(), [0], [0]

    def work(_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.005)
        with lock:
            running[0] -= 1

    callers = [threading.Thread(target=streams.run, args=(iter(range(1, 11)), work)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert most[0] == 2


def test_an_error_in_a_stream_reaches_the_caller():
    def work(job):
        raise ValueError(f"job {job}")

    with pytest.raises(ValueError, match="job"):
        Streams(3).run(iter(range(1, 100)), work)


FIRST_USE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import twinvec

sys.setswitchinterval(1e-6)  # change threads often, so that a deadlock has its chance
encoder = twinvec.load(sys.argv[1], runtime=sys.argv[2], threads=2)
together = Barrier(8)

def first(_):
    together.wait()
    return encoder.encode("red house").shape

with ThreadPoolExecutor(8) as pool:
    assert set(pool.map(first, range(8))) == {(32,)}
"""


@pytest.mark.parametrize("runtime", runtimes())
def test_threads_that_are_first_together_do_not_wait_for_each_other(tiny_bert, runtime):
    command = [sys.executable, "-c", FIRST_USE, str(tiny_bert), runtime]
    subprocess.run(command, check=True, timeout=60)


def finish(work, seconds=60):
    """What ``work`` gives; fails, instead of waiting for ever, if it does not end."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "still waiting"
    return found[0]


def in_another_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.mark.parametrize("call", [lambda work: work(), in_another_thread], ids=["same thread", "another thread"])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("runtime", runtimes())
def test_a_layer_visitor_may_use_the_same_encoder(tiny_bert, runtime, threads, call):
    encoder = twinvec.load(tiny_bert, runtime=runtime, threads=threads)
    expected = encoder.encode(TEXTS)
    seen = []

    def visit(batch):
        inner = []
        call(lambda: encoder.visit_layers(TEXTS[:9], lambda again: inner.extend(again.owners)))
        assert sorted(inner) == list(range(9))
        seen.append((batch.owners, call(lambda: encoder.encode([TEXTS[i] for i in batch.owners]))))

    finish(lambda: encoder.visit_layers(TEXTS, visit) or True)
    assert sorted(owner for owners, _ in seen for owner in owners) == list(range(len(TEXTS)))
    for owners, vectors in seen:
        np.testing.assert_allclose(vectors, expected[owners], atol=2e-6)


def test_an_error_in_a_layer_visitor_reaches_the_caller(tiny_bert):
    encoder = twinvec.load(tiny_bert, threads=2)

    def visit(batch):
        encoder.encode(TEXTS)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        encoder.visit_layers(TEXTS, visit)
    assert len(finish(lambda: encoder.encode(TEXTS))) == len(TEXTS)


def test_an_iterator_of_vectors_and_its_texts_may_use_the_same_encoder(tiny_bert):
    encoder = twinvec.load(tiny_bert, threads=1)

    def texts():
        for text in TEXTS:
            encoder.encode(text)
            yield text

    def nested():
        return [(vector, encoder.encode(TEXTS[:3])) for vector in encoder.encode_iter(texts())]

    found = finish(nested)
    np.testing.assert_allclose([vector for vector, _ in found], encoder.encode(TEXTS), atol=2e-6)
