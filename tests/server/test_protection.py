"""Who may call and how much: keys, rates, sizes, time, hosts; each refusal in the shape of the caller's dialect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_dialects import shape

from live_server import live_server
from twinvec.errors import InputError
from twinvec.server.protection import Gate, Key, new_key, read_keys
from twinvec.server.run import check_address
from twinvec.server.settings import ModelSpec, ServerSettings

PATHS = {
    "openai": ("/v1/embeddings", lambda texts: {"input": texts, "model": "bert"}),
    "tei": ("/embed", lambda texts: {"inputs": texts, "model": "bert"}),
    "cohere": ("/v2/embed", lambda texts: {"texts": texts, "model": "bert"}),
    "ollama": ("/api/embed", lambda texts: {"input": texts, "model": "bert"}),
}


def make_key(file: Path, name: str) -> str:
    """Add a key with the command; returns the secret."""
    command = [sys.executable, "-m", "twinvec.cli", "key", name, "--rate", "100000"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    with file.open("a") as lines:
        lines.write(result.stdout)
    return result.stderr.split(": ")[-1].strip()


@pytest.fixture(scope="module")
def guarded(served, tmp_path_factory):
    """A server with keys and tight limits, and the keys by name."""
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys = {"any": make_key(file, "any")}
    made = {f"slow-{name}": new_key(f"slow-{name}", rate=2) for name in PATHS}
    made["static"] = new_key("static", models=["static"])
    keys |= {name: secret for name, (secret, _) in made.items()}
    with file.open("a") as lines:
        lines.writelines(f"{key.line()}\n" for _, key in made.values())
    assert all(secret not in file.read_text() for secret in keys.values())
    limits = ("--max-body", "20kB", "--max-texts", "8", "--max-tokens", "300")
    models = (f"bert={served['bert']}", "static=twinvec-static")
    with live_server(*models, "--keys", file, *limits) as server:
        server.keys = keys
        yield server


def bearer(key):
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("dialect", PATHS)
def test_no_key_a_wrong_key_the_rate_and_the_size_are_refused_in_the_shape_of_the_dialect(guarded, dialect):
    path, request = PATHS[dialect]
    right = guarded.keys["any"]
    for headers in ({}, bearer("tv_00000000_" + "a" * 43), bearer(right[:-1] + "!"), bearer("é"), bearer("")):
        answer = guarded.post(path, request(["a cat"]), **headers)
        assert (answer.status, shape(answer.json)) == (401, dialect)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.post(path, request(["a cat"]), **bearer(right)).status == 200
    slow = bearer(guarded.keys[f"slow-{dialect}"])
    statuses = [guarded.post(path, request(["a cat"]), **slow).status for _ in range(2)]
    late = guarded.post(path, request(["a cat"]), **slow)
    assert [*statuses, late.status, shape(late.json)] == [200, 200, 429, dialect]
    assert 1 <= int(late.headers["retry-after"]) <= 30
    for texts in (["a" * 30_000], ["a"] * 9, ["cat dog " * 30] * 6):  # bytes, texts, tokens
        answer = guarded.post(path, request(texts), **bearer(right))
        assert (answer.status, shape(answer.json)) == (413, dialect), answer


def test_other_headers_carry_a_key_too_and_health_and_docs_need_none(guarded):
    for name in ("x_api_key", "api_key"):
        assert guarded.get("/v1/models", **{name: guarded.keys["any"]}).status == 200
    assert guarded.get("/v1/models").status == guarded.get("/metrics").status == 401
    assert [guarded.get(path).status for path in ("/health", "/health/live", "/docs", "/openapi.json")] == [200] * 4
    assert "securitySchemes" in guarded.get("/openapi.json").json["components"]


def test_a_key_may_be_limited_to_some_models(guarded):
    headers = bearer(guarded.keys["static"])
    assert guarded.post("/v1/embeddings", {"input": "a", "model": "bert"}, **headers).status == 403
    assert guarded.post("/v1/embeddings", {"input": "a"}, **headers).json["model"] == "static"
    assert [model["id"] for model in guarded.get("/v1/models", **headers).json["data"]] == ["static"]


def test_a_body_over_the_limit_is_refused_before_it_is_read(guarded):
    with guarded.connect() as connection:
        key = guarded.keys["any"]
        head = f"POST /embed HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
        connection.sendall(f"{head}Content-Length: 100000000\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")
    with guarded.connect() as connection:  # of unknown length
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        connection.sendall(b"8000\r\n" + b"a" * 0x8000 + b"\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_rates_refill_with_time():
    secret, key = new_key("a", rate=60)
    now = [0.0]
    gate = Gate({key.id: key}, clock=lambda: now[0])
    scope = {"headers": [(b"authorization", f"bearer {secret}".encode())]}
    for _ in range(60):
        gate.admit(scope)
    with pytest.raises(Exception, match="60 requests per minute"):
        gate.admit(scope)
    now[0] = 1.0
    gate.admit(scope)


def test_lines_of_a_key_file_are_checked(tmp_path):
    _, key = new_key("alice", rate=5, models=["b", "a"])
    assert Key.parse(key.line()) == key
    file = tmp_path / "keys.txt"
    for content, problem in (
        ("# nothing\n\n", "has no keys"),
        ("alice secret\n", "not valid"),
        (f"{key.line()} color=red\n", "options of the key"),
        (key.line().replace("rate=5", "rate=-1"), "options of the key"),
    ):
        file.write_text(content)
        with pytest.raises(InputError, match=problem):
            read_keys(file)
    with pytest.raises(InputError, match="Invalid name"):
        new_key("two words")


def test_a_public_address_needs_keys_or_force():
    with pytest.raises(InputError, match="no key is set"):
        check_address(ServerSettings(host="0.0.0.0"))
    with pytest.raises(InputError, match="no key is set"):
        check_address(ServerSettings(host="example.org"))
    check_address(ServerSettings(host="0.0.0.0", force_public=True))
    check_address(ServerSettings(host="0.0.0.0", keys=Path("keys.txt")))
    for host in ("127.0.0.1", "localhost", "::1", "127.1.2.3"):
        check_address(ServerSettings(host=host))


def test_pages_of_other_sites_cannot_use_a_server_without_keys(server):
    assert server.get("/v1/models", Host="rebound.example").status == 403
    assert server.get("/v1/models", Sec_Fetch_Site="cross-site", Origin="http://other.example").status == 403
    assert server.get("/v1/models", Sec_Fetch_Site="same-origin").status == 200
    answer = server.get("/v1/models", Origin="http://other.example")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")


def test_cors_can_be_allowed_for_one_origin(served):
    with live_server(f"bert={served['bert']}", "--cors", "http://good.example") as server:
        good = server.get("/v1/models", Origin="http://good.example", Sec_Fetch_Site="cross-site")
        assert (good.status, good.headers["access-control-allow-origin"]) == (200, "http://good.example")
        assert server.get("/v1/models", Origin="http://bad.example", Sec_Fetch_Site="cross-site").status == 403
        before = {"Origin": "http://good.example", "Access_Control_Request_Method": "POST"}
        assert server.request("OPTIONS", "/v1/embeddings", **before).status == 200


def test_models_are_given_as_text(tmp_path):
    spec = ModelSpec.parse(f"{tmp_path},precision=int8,truncate_dim=8,matryoshka=true")
    assert (spec.name, spec.source, spec.is_matryoshka) == (tmp_path.name, str(tmp_path), True)
    assert spec.arguments == {"precision": "int8", "truncate_dim": 8}
    for text, problem in (
        ("=a", "Invalid model"),
        ("a=b,presision=int8", "Did you mean 'precision'"),
        ("a=b,truncate_dim=x", "Invalid value 'x'"),
        ("a=b,matryoshka=yes", "Invalid value 'yes'"),
    ):
        with pytest.raises(Exception, match=problem):
            ModelSpec.parse(text)
    with pytest.raises(InputError, match="Two models have the name 'a'"):
        ServerSettings(models=(ModelSpec.parse("a=b"), ModelSpec.parse("a=c")))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--model", "x=./none/at/all"], "none/at/all"),
        (["--host", "0.0.0.0"], "no key is set"),
        (["--keys", "/none"], "does not exist"),
        (["m=twinvec-mini,precision=int7"], "int7"),
        (["--max-body", "4x"], "Invalid size '4x'"),
    ],
)
def test_wrong_arguments_end_with_one_line(arguments, problem):
    command = [sys.executable, "-m", "twinvec.cli", "serve", "--port", "0", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode in (1, 2)
    assert problem in result.stderr and "Traceback" not in result.stderr
