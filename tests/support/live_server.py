"""A real server process, and small requests to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class LiveServer:
    """A server process at ``url``; ``log`` holds the lines of its standard error."""

    def __init__(self, *arguments):
        python = os.environ.get("TWINVEC_SERVER_PYTHON", sys.executable)
        command = [python, "-m", "twinvec.cli", "serve", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})
        self.log = []
        first = self.process.stderr.readline()
        self.log.append(first)
        assert " on http://" in first, first + self.process.stderr.read()
        self.url = first.split(" on ")[-1].strip()
        self.port = int(self.url.rpartition(":")[2])
        self._reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 60
        while self.get("/health").status != 200:
            assert time.monotonic() < deadline, "the server is not ready"
            time.sleep(0.05)

    def get(self, path, **headers):
        return self.request("GET", path, None, **headers)

    def post(self, path, content, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.request("POST", path, body, **headers)

    def request(self, method, path, body=None, **headers):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def stop(self, timeout=30):
        """Ask the server to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join(5)
            self.process.stderr.close()


@contextmanager
def live_server(*arguments):
    """Run a server with command-line arguments, and stop it at the end."""
    server = LiveServer(*arguments)
    try:
        yield server
    finally:
        server.stop()
