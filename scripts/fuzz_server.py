"""Send many broken requests to a real server: no 5xx, no crash, no hang.

    python scripts/fuzz_server.py [--requests 10000] [--seed 0] [--clients .venv-clients]

Sends random bytes, deep JSON, huge numbers, wrong types, invalid UTF-8 and broken HTTP (tests/support/server_fuzz.py),
bodies of 100 MB, and, with the environment of make test-clients, what schemathesis derives from /openapi.json.
"""

from __future__ import annotations

import argparse
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "tests/support"
sys.path.insert(0, str(SUPPORT))

from live_server import LiveServer, live_server  # noqa: E402
from server_fuzz import PATHS, http_request, read_status, status_of  # noqa: E402
from tiny import write_tiny_classifier, write_tiny_model  # noqa: E402

ALLOWED = {503, 504}  # not ready, or over the time limit
HUGE = 100_000_000


def send_many(server: LiveServer, requests: int, seed: int) -> Counter[int]:
    """Send broken requests, eight at a time; the statuses. Raises AssertionError with the request that failed."""
    rng = random.Random(seed)
    contents = [http_request(rng) for _ in range(requests)]

    def send(content: bytes) -> int:
        status = status_of(server.port, content)
        assert status < 500 or status in ALLOWED, (status, content[:500])
        return status

    with ThreadPoolExecutor(8) as pool:
        return Counter(pool.map(send, contents))


def send_huge(server: LiveServer) -> Counter[int]:
    """Send bodies of 100 MB, with and without their length; the statuses."""
    found: Counter[int] = Counter()
    body = b'{"input": "' + b"a" * HUGE + b'"}'

    def send(content: bytes) -> None:
        # Unlike status_of, as clients do: one that closes its side after the body may not get an answer.
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(content)
            found[read_status(connection)] += 1

    for path in list(PATHS)[:4]:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
        send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk)
    assert set(found) == {413}, found
    return found


def run_schemathesis(server: LiveServer, clients: Path, seed: int) -> str:
    """What schemathesis reports; raises CalledProcessError if it finds a server error."""
    command = [str(clients / "bin/schemathesis"), "run", f"{server.url}/openapi.json", "--seed", str(seed)]
    command += ["--checks", "not_a_server_error", "--max-examples", "100", "--request-timeout", "30", "--no-color"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    if result.returncode:
        raise SystemExit(f"schemathesis found an error:\n{result.stdout[-4000:]}{result.stderr[-2000:]}")
    return "\n".join(result.stdout.strip().splitlines()[-12:])


def main() -> None:
    """Start a server and send everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clients", type=Path, default=Path(".venv-clients"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bert, cross = write_tiny_model(Path(folder) / "bert"), write_tiny_classifier(Path(folder) / "cross")
        started = time.perf_counter()
        with live_server(f"bert={bert}", f"cross={cross}") as server:
            print("statuses:", dict(send_many(server, options.requests, options.seed)), flush=True)
            print("bodies of 100 MB:", dict(send_huge(server)), flush=True)
            if (options.clients / "bin/schemathesis").exists():
                print(run_schemathesis(server, options.clients, options.seed), flush=True)
            assert server.get("/health").status == 200
            assert server.post("/embed", {"inputs": "a cat"}).status == 200
        assert server.process.returncode == 0
        assert not any("Traceback" in line for line in server.log), "".join(server.log[-40:])
    print(f"The server answered or refused everything, {time.perf_counter() - started:.0f} s.")


if __name__ == "__main__":
    main()
