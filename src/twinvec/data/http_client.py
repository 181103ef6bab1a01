"""HTTP: checks of addresses, downloads that follow only safe redirects, and reading with a time limit."""

from __future__ import annotations

import http.client
import ipaddress
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO, Any, Protocol
from urllib.parse import SplitResult, urlsplit

from twinvec.errors import InputError

__all__ = ["NoAnswer", "RedirectRefused", "check_address", "is_loopback", "no_answer", "open_url", "read_parts"]

CHUNK_BYTES = 1 << 18


class NoAnswer(Exception):
    """No response, or an incomplete one.

    ``is_timeout`` is set if the server was too slow, ``is_final`` if a retry would be useless.
    """

    def __init__(self, problem: str, *, is_timeout: bool = False, is_final: bool = False) -> None:
        super().__init__(problem)
        self.is_timeout = is_timeout
        self.is_final = is_final


class RedirectRefused(Exception):
    """The server redirects to ``target``, which is not followed."""

    def __init__(self, status: int, target: str) -> None:
        super().__init__(f"status {status} redirects to {target[:200]!r}")
        self.target = target


class Readable(Protocol):
    """The part of a response that is used here."""

    def read1(self, n: int = -1, /) -> bytes:
        """Return the bytes available, at most ``n``; empty at the end."""


def check_address(address: str, *, example: str) -> SplitResult:
    """Check and split the URL of a server; ``example`` is a valid URL for the hint.

    >>> check_address("https://host:8080/v1", example="https://host/v1").hostname
    'host'
    """
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, or an invalid port
        is_good = False
    if not is_good or not address.isascii() or not address.isprintable() or " " in address:
        raise InputError(f"Invalid URL {address!r:.200}.", hint=f"Use one like {example}.")
    if "@" in parts.netloc:
        raise InputError(
            f"The URL of {parts.hostname} contains a user name or a password.",
            hint="Remove it, because URLs are printed and stored. Put keys in an environment variable.",
        )
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("example.org")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _StaySecure(urllib.request.HTTPRedirectHandler):
    """Follows redirects between http and https URLs, but not from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the redirected request."""
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and (scheme != "http" or req.type == "https"):
            fp.close()
            raise RedirectRefused(code, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(request: urllib.request.Request, *, timeout_s: float) -> Any:  # noqa: ANN401 - urllib's own type is Any
    """Send a request, follow redirects, and return the open response, which the caller must close.

    Raises urllib's HTTPError for an error status, ``RedirectRefused``, or ``NoAnswer`` for anything else.
    """
    handlers: list[Any] = [_StaySecure]
    if is_loopback(urlsplit(request.full_url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        return urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: an invalid host or redirect
        raise no_answer(error, timeout_s) from error


def read_parts(answer: Readable, *, timeout_s: float, max_s: float | None = None) -> Iterator[bytes]:
    """The body of a response in chunks as they arrive; ``max_s`` limits the total time."""
    end = None if max_s is None else time.monotonic() + max_s
    while True:
        try:
            part = answer.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise no_answer(error, timeout_s) from error
        if not part:
            return
        yield part
        if end is not None and time.monotonic() > end:
            raise NoAnswer(f"no complete response within {max_s:g} s", is_timeout=True)


def no_answer(error: Exception, timeout_s: float) -> NoAnswer:
    """The error for an exception of a connection, with its reason."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return NoAnswer(f"no response within {timeout_s:g} s", is_timeout=True)
    if isinstance(reason, (http.client.HTTPException, ConnectionResetError, BrokenPipeError)):
        return NoAnswer(f"the response was interrupted ({type(reason).__name__})")
    return NoAnswer(f"no connection ({reason})")
