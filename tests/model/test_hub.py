"""Fetching from a hub: a real client against a small server on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from servers import reply, serving
from tiny import write_tiny_model

COMMIT = "a" * 40
LOAD = """
import sys, twinvec
encoder = twinvec.load(sys.argv[1])
print(encoder.encode("the cat").shape, encoder.folder.path)
"""


class Hub(BaseHTTPRequestHandler):
    """As much of a hub as fetching a model needs. ``folder`` and ``asked`` are set on a subclass."""

    folder: Path
    asked: list[str]

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.asked.append(self.path)
        path = self.path.split("?")[0]
        if path.startswith("/api/models/owner/tiny/"):
            return self.answer_listing(path)
        name = path.partition(f"/resolve/{COMMIT}/")[2]
        if not path.startswith("/owner/tiny/") or not (self.folder / name).is_file():
            return self.answer(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})
        return self.answer_file(name)

    do_HEAD = do_GET

    def answer_listing(self, path):
        files = sorted(file for file in self.folder.rglob("*") if file.is_file())
        names = [str(file.relative_to(self.folder)) for file in files]
        if "/tree/" in path:
            rows = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": "b" * 40}
                for name, file in zip(names, files, strict=True)
            ]
            return self.answer(200, json.dumps(rows).encode(), {})
        content = {"id": "owner/tiny", "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
        return self.answer(200, json.dumps(content).encode(), {})

    def answer_file(self, name):
        body = (self.folder / name).read_bytes()
        tag = hashlib.sha256(body).hexdigest()
        return self.answer(200, body, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT})

    def answer(self, code, body, headers):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def hub(tmp_path):
    folder = write_tiny_model(tmp_path / "served")
    (folder / "model.onnx").write_bytes(b"another format")
    handler = type("Served", (Hub,), {"folder": folder, "asked": []})
    with running(handler) as address:
        yield handler.asked, environment_of(address, tmp_path)


@contextmanager
def running(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def environment_of(address, tmp_path):
    environment = {
        **os.environ,
        "HF_ENDPOINT": address,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        environment.pop(name, None)
    return environment


def load(name, environment):
    command = [sys.executable, "-c", LOAD, name]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_model_is_fetched_once_without_other_formats_and_then_found_offline(hub):
    asked, environment = hub
    first = load("owner/tiny", environment)
    assert "(32,)" in first.stdout, first.stderr
    assert any("model.safetensors" in path for path in asked)
    assert not any("model.onnx" in path for path in asked)
    asked.clear()
    assert "(32,)" in load("owner/tiny", environment).stdout
    assert asked == []


def test_a_model_that_the_hub_does_not_have_is_reported_with_a_hint(hub):
    _, environment = hub
    result = load("owner/missing", environment)
    assert "Model 'owner/missing' is not on this machine" in result.stderr
    assert "Check the spelling and the network" in result.stderr


def test_the_token_of_the_hub_does_not_follow_a_redirect_to_another_server(hub, tmp_path):
    _, environment = hub
    weights = (tmp_path / "served/model.safetensors").read_bytes()
    seen = {"hub": [], "elsewhere": []}

    def elsewhere(handler, _):
        seen["elsewhere"].append(dict(handler.headers))
        reply(handler, 200, weights)

    class Moved(Hub):
        folder = tmp_path / "served"
        asked: ClassVar = []

        def answer_file(self, name):
            seen["hub"].append(dict(self.headers))
            if name != "model.safetensors":
                return super().answer_file(name)
            tag = hashlib.sha256(weights).hexdigest()
            moved = {"Location": f"{address}/weights", "X-Repo-Commit": COMMIT, "X-Linked-Etag": f'"{tag}"'}
            return self.answer(302, b"", {**moved, "X-Linked-Size": str(len(weights))})

    with serving(elsewhere) as address, running(Moved) as moving:
        done = load("owner/tiny", {**environment, "HF_ENDPOINT": moving, "HF_TOKEN": "hf_secret"})
    assert "(32,)" in done.stdout, done.stderr
    assert seen["elsewhere"] and all("hf_secret" not in str(headers) for headers in seen["elsewhere"])
    assert all("hf_secret" in str(headers) for headers in seen["hub"])
    assert "hf_secret" not in done.stdout + done.stderr
