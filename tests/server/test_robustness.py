"""Load, slow and broken clients, time limits, the end of the server: nobody else notices, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_dialects import shape
from test_protection import PATHS

from live_server import LiveServer, live_server

IN_FLIGHT = 1000


def raw(text, path="/v1/embeddings"):
    body = json.dumps({"input": text}).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def ask(port, text):
    """One request on a connection of its own: status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw(text))
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    writer.close()
    return int(head.split()[1]), body


def test_every_accepted_request_is_answered_after_sigterm(served, local):
    texts = [f"the cat sits on {number}" for number in range(IN_FLIGHT)]
    server = LiveServer(f"bert={served['bert']}", "--threads", "1")

    async def run():
        tasks = [asyncio.create_task(ask(server.port, text)) for text in texts]
        await asyncio.sleep(0)
        while not sum(task.done() for task in tasks):  # the first answer: all others are on their way
            await asyncio.sleep(0.001)
        n_done = sum(task.done() for task in tasks)
        code = asyncio.create_task(asyncio.to_thread(server.stop))
        return n_done, await asyncio.gather(*tasks), await code

    n_done, answers, code = asyncio.run(run())
    assert n_done < IN_FLIGHT / 2, "the test must end the server while requests are open"
    assert [status for status, _ in answers] == [200] * IN_FLIGHT
    vectors = [json.loads(body)["data"][0]["embedding"] for _, body in answers]
    np.testing.assert_allclose(np.array(vectors, dtype=np.float32), local["bert"].encode(texts), atol=1e-6)
    assert code == 0
    assert len(server.log) == 1, server.log


def test_a_draining_server_is_alive_but_not_ready(served):
    server = LiveServer(f"bert={served['bert']}", "--drain", "3")
    stopped = threading.Thread(target=server.stop)
    stopped.start()
    time.sleep(0.5)
    health = server.get("/health")
    assert (health.status, health.json, health.headers["connection"]) == (503, {"status": "draining"}, "close")
    assert server.get("/health/live").status == 200
    assert server.post("/embed", {"inputs": "a"}).status == 200
    stopped.join()
    assert server.process.returncode == 0


def test_slow_readers_endless_senders_and_idle_connections_do_not_stop_the_others(server):
    idle = [server.connect() for _ in range(500)]
    sender = server.connect()
    sender.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    readers = [server.connect() for _ in range(20)]
    for reader in readers:  # each asks for 2 MB and reads nothing
        reader.sendall(raw(["the cat"] * 2048))
    try:
        started = time.perf_counter()
        for number in range(20):
            assert server.post("/embed", {"inputs": f"the dog {number}"}).status == 200
        assert time.perf_counter() - started < 10
        assert idle[0].sendall(raw("a cat")) is None and idle[0].recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for connection in (*idle, sender, *readers):
            connection.close()
    assert server.get("/health").status == 200


@pytest.fixture(scope="module")
def hasty(served):
    """A server with a short time limit, a small queue, and one thread."""
    limits = ("--timeout", "1.5", "--queue", "64", "--threads", "1")
    with live_server(f"bert={served['bert']}", f"cross={served['cross']}", *limits) as server:
        yield server


def test_a_body_that_does_not_arrive_in_time_gets_408(hasty):
    with hasty.connect() as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))  # until the server closes the connection
        assert answer.startswith(b"HTTP/1.1 408") and b"error_type" in answer


def test_a_request_over_the_time_limit_gets_504_and_a_full_queue_429(hasty):
    words = " ".join(["cat dog bird sits runs"] * 5)
    pairs = {"queries": [f"{words} {number}" for number in range(2000)], "documents": [words] * 2000}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: hasty.post("/score", pairs), range(8)))
    statuses = {answer.status for answer in answers}
    assert statuses <= {200, 429, 504} and 429 in statuses, statuses
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.json["error"]["type"] == "rate_limit_error" and int(refused.headers["retry-after"]) >= 1
    assert hasty.post("/embed", {"inputs": "a"}).status == 200


def test_a_time_limit_is_an_error_in_the_shape_of_the_dialect(served):
    texts = [f"the cat {number} " + "sits runs bird dog " * 8 for number in range(2000)]
    with live_server(f"bert={served['bert']}", "--timeout", "0.1", "--threads", "1") as server:
        for dialect, (path, request) in PATHS.items():
            answer = server.post(path, request([f"{dialect} {text}" for text in texts]))
            assert (answer.status, shape(answer.json)) == (504, dialect)
        assert server.post("/embed", {"inputs": "a"}).status == 200


def test_clients_that_go_away_leave_the_queue(hasty):
    for number in range(20):
        with hasty.connect() as connection:
            connection.sendall(raw([f"the cat {number} {part}" for part in range(60)]))
    deadline = time.monotonic() + 10
    while b"twinvec_queued_texts 0.0" not in hasty.get("/metrics").body:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert hasty.post("/embed", {"inputs": "a"}).status == 200


def test_models_over_the_memory_limit_are_dropped_and_loaded_again(served, tmp_path):
    models = [f"{name}={served['bert']}" for name in ("one", "two", "three")]
    with live_server(*models, "--memory", "200kB") as server:
        first = [server.post("/embed", {"inputs": "a cat", "model": name}).json for name in ("one", "two", "three")]
        assert b"twinvec_loaded_models 1.0" in server.get("/metrics").body
        again = [server.post("/embed", {"inputs": "a cat", "model": name}).json for name in ("one", "two", "three")]
        assert first == again


def test_many_clients_at_once_get_their_own_vectors(server, local):
    texts = [f"the {word} sits {number} times" for number in range(60) for word in ("cat", "dog", "bird")]

    async def run():
        return await asyncio.gather(*(ask(server.port, text) for text in texts))

    vectors = [json.loads(body)["data"][0]["embedding"] for _, body in asyncio.run(run())]
    np.testing.assert_allclose(np.array(vectors, dtype=np.float32), local["bert"].encode(texts), atol=1e-6)
