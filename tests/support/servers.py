"""Local HTTP and HTTPS servers with custom responses."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CERTIFICATE = Path(__file__).parent / "localhost.pem"  # clients trust it with SSL_CERT_FILE


@contextmanager
def serving(answer, *, secure=False, port=0, keeps=False):
    """Run a server and yield its address; ``answer(handler, body)`` responds to each request.

    With ``keeps``, connections stay open between requests.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps else "HTTP/1.0"
        disable_nagle_algorithm = True

        def do_POST(self):
            answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def do_GET(self):
            answer(self, b"")

        do_CONNECT = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if secure else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(handler, status, content, headers=()):
    """Send a complete response."""
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
