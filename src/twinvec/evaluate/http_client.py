"""HTTP for evaluation: which addresses are taken, where a redirect may lead, and how an answer is read.

Redirects are refused where a key or a user's texts are sent (``redirects="refuse"``). For public files they are
followed, but never from https to anything else (``redirects="secure"``). Requests to this machine use no proxy; others
use the proxy that the environment names.
"""

from __future__ import annotations

import http.client
import ipaddress
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO, Any, Literal, Protocol
from urllib.parse import SplitResult, urlsplit

from twinvec.errors import InputError

__all__ = ["NoAnswer", "RedirectRefused", "Redirects", "check_address", "is_loopback", "open_url", "read_parts"]

Redirects = Literal["refuse", "secure"]

CHUNK_BYTES = 1 << 18


class NoAnswer(Exception):
    """Nothing came, or the answer broke off. ``is_timeout`` tells a server that was too slow."""

    def __init__(self, problem: str, *, is_timeout: bool = False) -> None:
        super().__init__(problem)
        self.is_timeout = is_timeout


class RedirectRefused(Exception):
    """The server sends the request elsewhere, to ``target``, and that is not followed."""

    def __init__(self, status: int, target: str) -> None:
        super().__init__(f"status {status} redirects to {target[:200]!r}")
        self.target = target


class Readable(Protocol):
    """As much of an answer as is read here."""

    def read1(self, n: int = -1, /) -> bytes:
        """What has come so far, at most ``n`` bytes; empty at the end."""
        ...


def check_address(address: str, *, example: str) -> SplitResult:
    """The parts of an address that a request can go to; ``example`` is one that would do.

    >>> check_address("https://host:8080/v1", example="https://host/v1").hostname
    'host'
    """
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an open bracket, or a port that is not a number up to 65535
        is_good = False
    if not is_good or not address.isascii() or not address.isprintable() or " " in address:
        raise InputError(f"{address!r:.200} is not the address of a server.", hint=f"Give one such as {example}.")
    if "@" in parts.netloc:
        raise InputError(
            f"The address of {parts.hostname} contains a user name or a password.",
            hint="Leave it out: addresses are printed and stored. Keys belong in an environment variable.",
        )
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("example.org")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _RefuseAll(urllib.request.HTTPRedirectHandler):
    """Any redirect is an error that names its target."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: http.client.HTTPMessage) -> None:  # noqa: ANN401
        """Refuse."""
        fp.close()
        raise RedirectRefused(code, str(headers.get("Location", "")))

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _StaySecure(urllib.request.HTTPRedirectHandler):
    """Follows redirects between addresses of http and https, but not from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request to send instead."""
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and (scheme != "http" or req.type == "https"):
            fp.close()
            raise RedirectRefused(code, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


HANDLERS: dict[Redirects, type[urllib.request.HTTPRedirectHandler]] = {"refuse": _RefuseAll, "secure": _StaySecure}


def open_url(asked: urllib.request.Request, *, timeout_s: float, redirects: Redirects) -> Any:  # noqa: ANN401 - urllib's own type is Any
    """The open answer, to be closed by the caller.

    Raises urllib's HTTPError for a status that is not good, ``RedirectRefused``, and ``NoAnswer`` for all else.
    """
    handlers: list[Any] = [HANDLERS[redirects]]
    if is_loopback(urlsplit(asked.full_url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        return urllib.request.build_opener(*handlers).open(asked, timeout=timeout_s)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a host or a redirect that is none
        raise _no_answer(error, timeout_s) from error


def read_parts(answer: Readable, *, timeout_s: float, max_s: float | None = None) -> Iterator[bytes]:
    """The body of an answer as it comes; ``max_s`` bounds the time for all of it."""
    end = None if max_s is None else time.monotonic() + max_s
    while True:
        try:
            part = answer.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _no_answer(error, timeout_s) from error
        if not part:
            return
        yield part
        if end is not None and time.monotonic() > end:
            raise NoAnswer(f"no whole answer within {max_s:g} s", is_timeout=True)


def _no_answer(error: Exception, timeout_s: float) -> NoAnswer:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return NoAnswer(f"no answer within {timeout_s:g} s", is_timeout=True)
    if isinstance(reason, (http.client.HTTPException, ConnectionResetError, BrokenPipeError)):
        return NoAnswer(f"the answer broke off ({type(reason).__name__})")
    return NoAnswer(f"no connection ({reason})")
