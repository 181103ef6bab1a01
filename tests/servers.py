"""A local HTTP server whose answers a test chooses."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(answer):
    """Run a server; ``answer(handler, body)`` replies to each request. Gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def do_GET(self):
            answer(self, b"")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(handler, status, content, headers=()):
    """Send a whole answer."""
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
