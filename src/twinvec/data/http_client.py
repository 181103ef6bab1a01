"""HTTP for evaluation and downloads: no redirects, no key to the wrong host, bounded retries."""

from __future__ import annotations

import http.client
import ipaddress
import json
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal, Protocol
from urllib.parse import SplitResult, urlsplit

from twinvec.errors import InputError

__all__ = ["NoAnswer", "RedirectRefused", "Retries", "check_address", "open_url", "post", "read_parts"]

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


logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5  # doubled after every try
LONGEST_PAUSE_S = 30.0  # also the most that is waited for a server's Retry-After
WORTH_ANOTHER_TRY = 408, 425, 429, 500, 502, 503, 504
MAX_ANSWER_BYTES = 1 << 28  # 64 vectors of 4,096 numbers as text are 6 MB
MAX_SAID_BYTES = 2000
KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to try again, and how long to wait for an answer."""

    n: int
    timeout_s: float
    first_pause_s: float = FIRST_PAUSE_S


class Failure(Exception):
    """One try went wrong. ``pause_s`` is how long the server asks to wait; ``is_final`` if another try is no use."""

    def __init__(self, problem: str, *, pause_s: float | None = None, is_final: bool = False, hint: str = "") -> None:
        super().__init__(problem)
        self.pause_s = pause_s
        self.is_final = is_final
        self.hint = hint


def post(url: str, content: object, *, key_variable: str, retries: Retries, request: str) -> bytes:
    """The body of a good answer; ``request`` is what errors call the request."""
    key = _key(url, key_variable)
    asked = urllib.request.Request(url, json.dumps(content).encode(), _headers(key), method="POST")
    pause_s = retries.first_pause_s
    for n_tried in range(1, retries.n + 2):
        try:
            return _try(asked, retries.timeout_s, key)
        except Failure as failure:
            if failure.is_final or n_tried > retries.n:
                tries = f" in {n_tried} tries" if n_tried > 1 else ""
                hint = failure.hint or _advice(failure, key_variable)
                raise InputError(f"{request} failed{tries}: {failure}", hint=hint) from failure
            wait_s = min(pause_s if failure.pause_s is None else failure.pause_s, LONGEST_PAUSE_S)
            logger.warning("%s failed: %s Trying again in %.1f s.", request, failure, wait_s)
            time.sleep(wait_s)
            pause_s *= 2
    raise AssertionError("unreachable")


def _key(url: str, key_variable: str) -> str:
    """The key to send to the server, checked; empty if there is none. It is never part of a message."""
    key = os.environ.get(key_variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise InputError(
            f"The key in {key_variable} contains a line break or another character that keys do not have.",
            hint="Set the variable again, to the key alone.",
        )
    parts = urlsplit(url)
    if key and key_variable == KEY_VARIABLE and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InputError(
            f"The key in {key_variable} is not sent to {parts.netloc} by plain http, where others can read it.",
            hint="Use https. If the network is trusted, put the server's key into a variable of its own and name it "
            "with --api-key-variable; if the server needs no key, name a variable that is not set.",
        )
    return key


def _headers(key: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "twinvec"}
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers


def _try(asked: urllib.request.Request, timeout_s: float, key: str) -> bytes:
    try:
        with open_url(asked, timeout_s=timeout_s, redirects="refuse") as answer:
            return _body(answer, timeout_s)
    except RedirectRefused as error:
        hint = "Redirects are not followed, so that texts and keys stay where you send them. Give the final address."
        raise Failure(f"{_without(key, str(error))}.", is_final=True, hint=hint) from error
    except urllib.error.HTTPError as error:
        with error:
            said = _without(key, _said(error, timeout_s))
        is_final = error.code not in WORTH_ANOTHER_TRY
        raise Failure(f"status {error.code}{said}.", pause_s=_retry_after(error), is_final=is_final) from error
    except NoAnswer as error:
        raise Failure(f"{error}.") from error


def _body(answer: http.client.HTTPResponse, timeout_s: float) -> bytes:
    length = answer.headers.get("Content-Length", "")
    body = bytearray()
    for part in read_parts(answer, timeout_s=timeout_s, max_s=timeout_s):
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise Failure(f"the answer has more than {MAX_ANSWER_BYTES >> 20} MB.", is_final=True)
    if length.isdecimal() and len(body) < int(length):
        raise Failure(f"the answer broke off after {len(body):,} of {int(length):,} bytes.")
    return bytes(body)


def _said(error: urllib.error.HTTPError, timeout_s: float) -> str:
    """What the server says of its error, in one line."""
    raw = b""
    try:
        for part in read_parts(error, timeout_s=timeout_s, max_s=timeout_s):
            raw += part
            if len(raw) >= MAX_SAID_BYTES:
                break
    except NoAnswer:
        return ""
    body = raw[:MAX_SAID_BYTES].decode("utf-8", errors="replace")
    try:
        answer = json.loads(body)
        answer = answer.get("error", answer) if isinstance(answer, dict) else body
        body = str(answer.get("message", answer) if isinstance(answer, dict) else answer)
    except (ValueError, RecursionError):
        pass
    line = " ".join(body.split())[:200].rstrip(".")
    return f" ({line})" if line else ""


def _without(key: str, said: str) -> str:
    """What a server said, without the key that it may repeat."""
    return said.replace(key, "***") if key else said


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    try:
        return max(0.0, float(error.headers.get("Retry-After", "")))
    except ValueError:  # none, or a date
        return None


def _advice(failure: Failure, key_variable: str) -> str:
    if "status 401" in str(failure) or "status 403" in str(failure):
        return f"Set {key_variable} to a valid key."
    if "status 404" in str(failure):
        return "Check the address and the name of the model."
    return "Check the server." if failure.is_final else "Check that the server runs, or ask it again later."
