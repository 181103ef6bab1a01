"""The server under load on this machine: throughput and latency compared with local encoding and with a rival's server.

    python benchmarks/serve.py [--model FOLDER] [--rounds 5] [--requests 2000] [--rival PYTHON] [--soak 100000]

Many clients: 64 connections send one short text each, again and again; every text is sent once per round. The same
texts are encoded locally in the same round, with one call of ``Encoder.encode``. One client: one connection, compared
with local calls of one text. The rival is a plain FastAPI server around sentence-transformers, as in many tutorials,
once with ``def`` and once with ``async def``; PYTHON must have the packages of requirements-bench.txt. Clients are a
process of their own (benchmarks/serve_load.py), which competes with the server for the same cores; its share of the CPU
is reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from common import arguments, sts_sentences, write_result

import twinvec

CLIENTS = 64
LOAD = Path(__file__).parent / "serve_load.py"
RIVAL = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

app = FastAPI()
model = SentenceTransformer(sys.argv[1], device="cpu")


class Request(BaseModel):
    input: list[str]


@app.get("/health")
def health():
    return {}


@app.post("/v1/embeddings")
%s embeddings(request: Request):
    vectors = model.encode(request.input, show_progress_bar=False)
    return {"data": [{"index": index, "embedding": row.tolist()} for index, row in enumerate(vectors)]}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
"""


@contextmanager
def running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block; yields when it is ready."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                with urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(90)


def load(port: int, texts: list[str], clients: int, *, requests: int | None = None) -> dict[str, Any]:
    """Send every text in a request of its own; latencies, and the CPU time of the clients."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        command = [sys.executable, str(LOAD), str(port), file.name, str(clients), str(requests or len(texts))]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=180).stdout)
    assert found["failed"] == 0, found
    return found


def resident_mb(process: subprocess.Popen[bytes]) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def encoded_s(encoder: twinvec.Encoder, texts: list[str]) -> float:
    """Seconds of one local call."""
    started = time.perf_counter()
    encoder.encode(texts, progress=False)
    return time.perf_counter() - started


def measure(port: int, encoder: twinvec.Encoder, texts: list[str], rounds: int) -> dict[str, Any]:
    """Many clients and one client, in alternation with local encoding."""
    one = texts[:200]
    encoded_s(encoder, texts)
    load(port, texts, CLIENTS)
    many, alone, local, local_one = [], [], [], []
    for _ in range(rounds):
        local.append(len(texts) / encoded_s(encoder, texts))
        many.append(load(port, texts, CLIENTS))
        local_one.append(median(encoded_s(encoder, [text]) for text in one) * 1000)
        alone.append(load(port, one, 1)["p50_ms"])
    rates = [each["per_s"] for each in many]
    return {
        "local_per_s": round(median(local), 1),
        "served_per_s": round(median(rates), 1),
        "share": round(median(rate / own for rate, own in zip(rates, local, strict=True)), 3),
        "p50_ms": round(median(each["p50_ms"] for each in many), 1),
        "p99_ms": round(median(each["p99_ms"] for each in many), 1),
        "client_cpu_share": round(median(each["cpu_share"] for each in many), 3),
        "one_local_ms": round(median(local_one), 2),
        "one_served_ms": round(median(alone), 2),
        "one_ratio": round(median(a / b for a, b in zip(alone, local_one, strict=True)), 2),
    }


def compare(ports: dict[str, int], texts: list[str], rounds: int) -> dict[str, Any]:
    """Requests per second of several servers, in alternation."""
    for port in ports.values():
        load(port, texts[:200], CLIENTS)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ports}
    for _ in range(rounds):
        for name, port in ports.items():
            found[name].append(load(port, texts, CLIENTS))
    return {
        name: {key: round(median(run[key] for run in runs), 1) for key in ("per_s", "p50_ms", "p99_ms")}
        for name, runs in found.items()
    }


def soak(process: subprocess.Popen[bytes], port: int, texts: list[str], requests: int) -> dict[str, Any]:
    """Memory after each tenth of many requests."""
    memory = []
    for _ in range(10):
        load(port, texts, CLIENTS, requests=requests // 10)
        memory.append(round(resident_mb(process), 1))
    return {"requests": requests, "memory_mb": memory, "growth": round(memory[-1] / memory[1] - 1, 4)}


def server(name: str, port: int, *models: str) -> list[str]:
    """The command of our server."""
    return [sys.executable, "-m", "twinvec.cli", "serve", *models, "--port", str(port)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rival", help="a Python with fastapi, uvicorn and sentence-transformers")
    parser.add_argument("--soak", type=int, default=0, help="requests for the measurement of memory")
    parser.add_argument("--precisions", default="float32,int8")
    options = parser.parse_args()
    texts, source = sts_sentences(options.data, options.requests)
    result: dict[str, Any] = {
        "model": options.model.name,
        "texts": source,
        "clients": CLIENTS,
        "rounds": options.rounds,
    }
    for precision in filter(None, options.precisions.split(",")):
        with running(server("own", 18601, f"m={options.model},precision={precision}"), 18601):
            encoder = twinvec.load(options.model, precision=precision, long="cut")
            result[precision] = measure(18601, encoder, texts, options.rounds)
        print(precision, json.dumps(result[precision]), flush=True)
    if options.rival:
        with ExitStack() as stack:
            own = server("own", 18602, f"m={options.model},precision=int8")
            stack.enter_context(running(own, 18602))
            ports = {"twinvec int8": 18602}
            for number, word in enumerate(("def", "async def")):
                port = 18603 + number
                stack.enter_context(running([options.rival, "-c", RIVAL % word, str(options.model), str(port)], port))
                ports[f"sentence-transformers + FastAPI, {word}"] = port
            rows = compare(ports, texts[:500], min(3, options.rounds))
        best = max(row["per_s"] for name, row in rows.items() if "FastAPI" in name)
        result["rival"] = {"rows": rows, "ratio": round(rows["twinvec int8"]["per_s"] / best, 2)}
        print(json.dumps(result["rival"]), flush=True)
    if options.soak:
        with running(server("own", 18605, "twinvec-mini,precision=int8"), 18605) as process:
            result["soak"] = soak(process, 18605, texts, options.soak)
        print(json.dumps(result["soak"]), flush=True)
    write_result("serve", result)


if __name__ == "__main__":
    main()
