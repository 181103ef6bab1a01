"""Broken requests for the server: random bytes, deep and huge JSON, wrong types, wrong UTF-8, broken HTTP.

No imports beyond the standard library: scripts/fuzz_server.py uses it too.
"""

from __future__ import annotations

import errno
import json
import random
import socket

PATHS = {
    "/v1/embeddings": {"input": "a cat", "model": "bert", "encoding_format": "float", "dimensions": 32},
    "/embeddings": {"input": ["a cat"], "input_type": "query", "output_dtype": "int8"},
    "/embed": {"inputs": ["a cat", "a dog"], "truncate": True, "normalize": True, "prompt_name": None},
    "/embed_all": {"inputs": "a cat"},
    "/": {"inputs": "a cat"},
    "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
    "/predict": {"inputs": [["a", "b"]], "raw_scores": False, "model": "cross"},
    "/tokenize": {"inputs": "a cat", "add_special_tokens": True},
    "/rerank": {"query": "a", "texts": ["b"], "raw_scores": False, "return_text": True},
    "/v1/rerank": {"query": "a", "documents": ["b"], "top_n": 1, "return_documents": True},
    "/v2/rerank": {"query": "a", "documents": [{"text": "b"}], "max_tokens_per_doc": 4096},
    "/v2/embed": {"texts": ["a"], "input_type": "clustering", "embedding_types": ["float"], "truncate": "END"},
    "/score": {"queries": "a", "documents": ["b"]},
    "/api/embed": {"input": "a", "truncate": True, "keep_alive": "5m"},
    "/api/embeddings": {"prompt": "a"},
}
GET_PATHS = (
    "/v1/models",
    "/v1/models/%00",
    "/info",
    "/api/tags",
    "/health",
    "/metrics",
    "/docs/../..",
    "/%ff%fe",
    "/a" * 90,
)
VALUES = [
    None, True, 0, -1, 1.5, 10**400, -(10**30), 1e308, "", "a", "\x00", "\ud7ff", "😀" * 50, "a" * 5000, [], {}, [[]],
    [None], [1, "a"], ["a"] * 300, {"a": {"b": []}}, "../../etc/passwd", "%s%n", ["a", ["b"]], [["a", "b", "c"]], 2**63,
]  # fmt: skip
ENDS = (b"\xff", b"\\ud800", b"\xed\xa0\x80", b"1e999999", b"NaN")
CONTINUE = b"HTTP/1.1 100"
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW")


def changed(rng: random.Random, request: dict) -> object:
    """A request with odd values, without a field, or replaced by an odd value."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(VALUES)
    content = dict(request)
    if kind == 1:
        del content[rng.choice(list(content))]
        return content
    for name in rng.sample(list(content), rng.randint(1, len(content))):
        content[name] = rng.choice(VALUES)
    return content


def bodies(rng: random.Random, request: dict) -> bytes:
    """One broken or odd body."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(rng.randrange(2000))
    if kind == 1:
        depth = rng.choice((10, 1000, 100_000))
        return b'{"input":' + b"[" * depth + b"]" * rng.choice((0, depth)) + b"}"
    content = request if kind in (2, 3) else changed(rng, request)
    data = bytearray(json.dumps(content, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass"))
    if kind == 2:
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if kind == 3:
        data = data[: rng.randrange(len(data))] + rng.choice(ENDS)
    return bytes(data)


def http_request(rng: random.Random) -> bytes:
    """One request as bytes: mostly a broken body in good HTTP, now and then broken HTTP."""
    path, request = rng.choice(list(PATHS.items()))
    body = bodies(rng, request)
    length = f"Content-Length: {len(body)}"
    kind = rng.randrange(30)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 500))
    if kind == 1:
        length = rng.choice(("Content-Length: -5", "Content-Length: abc", f"Content-Length: {10**30}"))
    method = rng.choice(METHODS) if kind == 2 else "POST"
    if kind == 3:
        method, path, body, length = "GET", rng.choice(GET_PATHS), b"", "X: y"
    extra = rng.choice(
        ("", "", "Content-Type: text/xml\r\n", "Authorization: Bearer \xff\r\n", "Expect: 100-continue\r\n")
    )
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{extra}{length}\r\n\r\n"
    return head.encode("latin-1") + body


def read_status(connection: socket.socket) -> int:
    """The status of the next answer that is not 100; 0 if there is none."""
    answer = b""
    while True:
        if answer.startswith(CONTINUE) and b"\r\n\r\n" in answer:
            answer = answer.partition(b"\r\n\r\n")[2]
        if len(answer) >= 12 and not answer.startswith(CONTINUE):
            return int(answer[9:12])
        part = connection.recv(65536)
        if not part:
            return 0
        answer += part


def status_of(port: int, content: bytes, timeout: float = 30.0) -> int:
    """The status of the answer to some bytes; 0 if the server closes the connection without one.

    Raises TimeoutError if the server neither answers nor closes the connection.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        try:
            connection.sendall(content)
            _end_writing(connection)
            return read_status(connection)
        except (ConnectionError, BrokenPipeError):
            return 0


def _end_writing(connection: socket.socket) -> None:
    """Say that no more bytes follow, unless the server has answered and closed the connection by now."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
