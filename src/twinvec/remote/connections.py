"""Connections to one server, kept open between requests; redirects are refused."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import urllib.request
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from twinvec.data.http_client import NoAnswer, RedirectRefused, is_loopback, no_answer, read_parts
from twinvec.errors import InputError

__all__ = ["Connections", "Reply"]

MAX_ANSWER_BYTES = 1 << 28  # 64 vectors of 4,096 numbers as text are 6 MB
MAX_MESSAGE_BYTES = 2000  # of an error
REDIRECTS = 301, 302, 303, 307, 308
DROPPED = ConnectionResetError, BrokenPipeError  # the first includes http.client.RemoteDisconnected

Connection = http.client.HTTPConnection


@dataclass(frozen=True, slots=True)
class Reply:
    """The complete response of a server; of an error, only the beginning of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Open connections to the server of an address. Threads can share them; a forked process opens its own."""

    def __init__(self, address: str, *, timeout_s: float, n_kept: int) -> None:
        self._server = urlsplit(address)
        self._timeout_s = timeout_s
        self._idle: tuple[int, deque[Connection]] = os.getpid(), deque()
        self._n_kept = n_kept
        self._tls: ssl.SSLContext | None = None

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """Send a request and read the whole response.

        If the server has closed an idle connection, the request is sent again on a new one. Raises ``NoAnswer``, or
        ``RedirectRefused``.
        """
        while True:
            connection, is_new = self._take()
            try:
                response = self._start(connection, method, path, body, headers)
                break
            except DROPPED as error:
                connection.close()
                if is_new:
                    raise no_answer(error, self._timeout_s) from error
            except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a bad host or header
                connection.close()
                raise no_answer(error, self._timeout_s) from error
            except BaseException:
                connection.close()
                raise
        return self._read(connection, response)

    def close(self) -> None:
        """Close the idle connections. Later requests open new ones."""
        idle = self._own_idle()
        while idle:
            idle.pop().close()

    def __del__(self) -> None:
        for connection in self._idle[1]:  # of a parent process too: only this process's handle is closed
            connection.close()

    def _own_idle(self) -> deque[Connection]:
        process, idle = self._idle
        if process != os.getpid():  # after a fork, the parent still uses its connections
            idle = deque()
            self._idle = os.getpid(), idle
        return idle

    def _take(self) -> tuple[Connection, bool]:
        """A connection, and whether it is new."""
        try:
            return self._own_idle().pop(), False
        except IndexError:
            return self._open(), True

    def _open(self) -> Connection:
        server, proxy = self._server, self._proxy()
        host, port = server.hostname or "", server.port
        if server.scheme == "https":
            self._tls = self._tls or ssl.create_default_context()
            where = (host, port) if proxy is None else (proxy.hostname or "", proxy.port)
            secure = http.client.HTTPSConnection(*where, timeout=self._timeout_s, context=self._tls)
            if proxy is not None:
                secure.set_tunnel(host, port or http.client.HTTPS_PORT, headers=_proxy_key(proxy))
            return secure
        if proxy is not None:
            host, port = proxy.hostname or "", proxy.port
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)

    def _proxy(self) -> SplitResult | None:
        """The proxy that the environment names for the server, if any."""
        host = self._server.hostname or ""
        found = urllib.request.getproxies().get(self._server.scheme)
        if not found or is_loopback(host) or urllib.request.proxy_bypass(self._server.netloc):
            return None
        try:
            proxy = urlsplit(found if "://" in found else f"http://{found}")
            is_good = proxy.scheme == "http" and bool(proxy.hostname) and proxy.port != 0
        except ValueError:
            is_good = False
        if not is_good:
            raise InputError(
                f"The proxy in the environment variable {self._server.scheme}_proxy is not supported.",
                hint="Use one like http://host:3128, or name the server in no_proxy.",
            )
        return proxy

    def _start(
        self, connection: Connection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """Send a request and read the head of the response."""
        proxy = self._proxy() if self._server.scheme == "http" else None
        if proxy is not None:
            path = f"http://{self._server.netloc}{path}"
            headers = {**headers, "Host": self._server.netloc, **_proxy_key(proxy)}
        try:
            connection.request(method, path, body, dict(headers))
        except DROPPED:
            if connection.sock is None:
                raise
            # a server may refuse a large body before it has read all of it: its response says why
        return connection.getresponse()

    def _read(self, connection: Connection, response: http.client.HTTPResponse) -> Reply:
        is_kept = False
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.status in REDIRECTS:
                raise RedirectRefused(response.status, headers.get("location", ""))
            is_error = response.status >= 300
            body = self._body(response, MAX_MESSAGE_BYTES if is_error else MAX_ANSWER_BYTES, is_error=is_error)
            is_whole = response.isclosed() or response.length == 0
            is_kept = is_whole and not response.will_close
        finally:
            response.close()
            idle = self._own_idle()
            if is_kept and len(idle) < self._n_kept:
                idle.append(connection)
            else:
                connection.close()
        return Reply(response.status, headers, body)

    def _body(self, response: http.client.HTTPResponse, most: int, *, is_error: bool) -> bytes:
        body = bytearray()
        try:
            for part in read_parts(response, timeout_s=self._timeout_s, max_s=self._timeout_s):
                body += part
                if len(body) > most:
                    break
        except NoAnswer:
            if not is_error:
                raise
        if is_error:
            return bytes(body[:most])
        if len(body) > most:
            raise NoAnswer(f"the response is larger than {most >> 20} MB", is_final=True)
        length = response.headers.get("Content-Length", "")[:20]
        if length.isdecimal() and len(body) < int(length):
            raise NoAnswer(f"the response was interrupted after {len(body):,} of {int(length):,} bytes")
        return bytes(body)


def _proxy_key(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(words).decode()}"}
