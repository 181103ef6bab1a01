"""Clients for benchmarks/serve.py, as lean as Python allows, so that they take little CPU from the server.

    python benchmarks/serve_load.py PORT TEXTS.json CLIENTS REQUESTS

Each client has one connection and sends one text at a time. Prints JSON: rate, latencies, and the CPU share of this
process (1 is one core).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import cast

HEAD = "POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def request(text: str) -> bytes:
    """A whole request for one text."""
    body = json.dumps({"input": [text]}).encode()
    return (HEAD % len(body)).encode() + body


class Client(asyncio.Protocol):
    """Sends the next request as soon as the last is answered."""

    def __init__(self, requests: Iterator[bytes], seconds: list[float], done: asyncio.Future[None]) -> None:
        self.requests, self.seconds, self.done = requests, seconds, done
        self.n_failed = 0
        self.missing = -1  # bytes of the answer; -1 before its head is complete
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.n_failed += 1
            self.done.set_result(None)

    def send(self) -> None:
        content = next(self.requests, None)
        if content is None:
            self.done.set_result(None)
            self.transport.close()
            return
        self.started = time.perf_counter()
        self.transport.write(content)

    def data_received(self, data: bytes) -> None:
        if self.missing < 0:
            self.buffer += data
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            self.n_failed += not head.startswith(b"HTTP/1.1 200")
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.missing, self.buffer = int(length) - len(rest), b""
        else:
            self.missing -= len(data)
        if self.missing == 0:
            self.missing = -1
            self.seconds.append(time.perf_counter() - self.started)
            self.send()


async def run(port: int, texts: list[str], n_clients: int, n_requests: int) -> dict[str, float]:
    """Send all requests; the results."""
    loop = asyncio.get_running_loop()
    requests = islice(cycle([request(text) for text in texts]), n_requests)
    seconds: list[float] = []
    clients = [Client(requests, seconds, loop.create_future()) for _ in range(n_clients)]
    started, cpu = time.perf_counter(), time.process_time()
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*(client.done for client in clients))
    elapsed = time.perf_counter() - started
    ordered = sorted(seconds)
    return {
        "per_s": len(seconds) / elapsed,
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
        "cpu_share": (time.process_time() - cpu) / elapsed,
        "failed": sum(client.n_failed for client in clients) + n_requests - len(seconds),
    }


if __name__ == "__main__":
    with suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    port, file, n_clients, n_requests = sys.argv[1:]
    texts = json.loads(Path(file).read_text(encoding="utf-8"))
    print(json.dumps(asyncio.run(run(int(port), texts, int(n_clients), int(n_requests)))))
