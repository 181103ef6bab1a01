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
    """No response, or an incomplete one. ``is_timeout`` is set if the server was too slow."""

    def __init__(self, problem: str, *, is_timeout: bool = False) -> None:
        super().__init__(problem)
        self.is_timeout = is_timeout


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


class _RefuseAll(urllib.request.HTTPRedirectHandler):
    """Raises an error with the target of any redirect."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: http.client.HTTPMessage) -> None:  # noqa: ANN401
        """Raise an error with the target."""
        fp.close()
        raise RedirectRefused(code, str(headers.get("Location", "")))

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


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


HANDLERS: dict[Redirects, type[urllib.request.HTTPRedirectHandler]] = {"refuse": _RefuseAll, "secure": _StaySecure}


def open_url(request: urllib.request.Request, *, timeout_s: float, redirects: Redirects) -> Any:  # noqa: ANN401 - urllib's own type is Any
    """Send a request and return the open response, which the caller must close.

    Raises urllib's HTTPError for an error status, ``RedirectRefused``, or ``NoAnswer`` for anything else.
    """
    handlers: list[Any] = [HANDLERS[redirects]]
    if is_loopback(urlsplit(request.full_url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        return urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: an invalid host or redirect
        raise _no_answer(error, timeout_s) from error


def read_parts(answer: Readable, *, timeout_s: float, max_s: float | None = None) -> Iterator[bytes]:
    """The body of a response in chunks as they arrive; ``max_s`` limits the total time."""
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
            raise NoAnswer(f"no complete response within {max_s:g} s", is_timeout=True)


def _no_answer(error: Exception, timeout_s: float) -> NoAnswer:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return NoAnswer(f"no response within {timeout_s:g} s", is_timeout=True)
    if isinstance(reason, (http.client.HTTPException, ConnectionResetError, BrokenPipeError)):
        return NoAnswer(f"the response was interrupted ({type(reason).__name__})")
    return NoAnswer(f"no connection ({reason})")


logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5  # doubled after every attempt
LONGEST_PAUSE_S = 30.0  # also the limit for a server's Retry-After
WORTH_ANOTHER_TRY = 408, 425, 429, 500, 502, 503, 504
MAX_ANSWER_BYTES = 1 << 28  # 64 vectors of 4,096 numbers as text are 6 MB
MAX_MESSAGE_BYTES = 2000
KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of retries, and the timeout of each attempt."""

    n: int
    timeout_s: float
    first_pause_s: float = FIRST_PAUSE_S


class Failure(Exception):
    """A failed attempt. ``pause_s`` is the server's Retry-After; ``is_final`` means that a retry would be useless."""

    def __init__(self, problem: str, *, pause_s: float | None = None, is_final: bool = False, hint: str = "") -> None:
        super().__init__(problem)
        self.pause_s = pause_s
        self.is_final = is_final
        self.hint = hint


def post(url: str, content: object, *, key_variable: str, retries: Retries, request: str) -> bytes:
    """Post JSON and return the body of the response; ``request`` is the name of the request in errors."""
    key = _key(url, key_variable)
    prepared = urllib.request.Request(url, json.dumps(content).encode(), _headers(key), method="POST")
    pause_s = retries.first_pause_s
    for n_tried in range(1, retries.n + 2):
        try:
            return _try(prepared, retries.timeout_s, key)
        except Failure as failure:
            if failure.is_final or n_tried > retries.n:
                tries = f" after {n_tried} attempts" if n_tried > 1 else ""
                hint = failure.hint or _advice(failure, key_variable)
                raise InputError(f"{request} failed{tries}: {failure}", hint=hint) from failure
            wait_s = min(pause_s if failure.pause_s is None else failure.pause_s, LONGEST_PAUSE_S)
            logger.warning("%s failed: %s Retrying in %.1f s.", request, failure, wait_s)
            time.sleep(wait_s)
            pause_s *= 2
    raise AssertionError("unreachable")


def _key(url: str, key_variable: str) -> str:
    """The key to send to the server, checked; empty if there is none. It never appears in messages."""
    key = os.environ.get(key_variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise InputError(
            f"The key in {key_variable} contains a line break or another invalid character.",
            hint="Set the variable to the key only.",
        )
    parts = urlsplit(url)
    if key and key_variable == KEY_VARIABLE and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InputError(
            f"Refusing to send the key in {key_variable} to {parts.netloc} over plain http, where others can read it.",
            hint="Use https. On a trusted network, put the server's key in another variable and name it with "
            "--api-key-variable; if the server needs no key, name a variable that is not set.",
        )
    return key


def _headers(key: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "twinvec"}
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers


def _try(request: urllib.request.Request, timeout_s: float, key: str) -> bytes:
    try:
        with open_url(request, timeout_s=timeout_s, redirects="refuse") as answer:
            return _body(answer, timeout_s)
    except RedirectRefused as error:
        hint = "Redirects are not followed, so that texts and keys go only where you send them. Use the final URL."
        raise Failure(f"{_without(key, str(error))}.", is_final=True, hint=hint) from error
    except urllib.error.HTTPError as error:
        with error:
            message = _without(key, _message(error, timeout_s))
        is_final = error.code not in WORTH_ANOTHER_TRY
        raise Failure(f"status {error.code}{message}.", pause_s=_retry_after(error), is_final=is_final) from error
    except NoAnswer as error:
        raise Failure(f"{error}.") from error


def _body(answer: http.client.HTTPResponse, timeout_s: float) -> bytes:
    length = answer.headers.get("Content-Length", "")
    body = bytearray()
    for part in read_parts(answer, timeout_s=timeout_s, max_s=timeout_s):
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise Failure(f"the response is larger than {MAX_ANSWER_BYTES >> 20} MB.", is_final=True)
    if length.isdecimal() and len(body) < int(length):
        raise Failure(f"the response was interrupted after {len(body):,} of {int(length):,} bytes.")
    return bytes(body)


def _message(error: urllib.error.HTTPError, timeout_s: float) -> str:
    """The server's error message, in one line."""
    raw = b""
    try:
        for part in read_parts(error, timeout_s=timeout_s, max_s=timeout_s):
            raw += part
            if len(raw) >= MAX_MESSAGE_BYTES:
                break
    except NoAnswer:
        return ""
    body = raw[:MAX_MESSAGE_BYTES].decode("utf-8", errors="replace")
    try:
        answer = json.loads(body)
        answer = answer.get("error", answer) if isinstance(answer, dict) else body
        body = str(answer.get("message", answer) if isinstance(answer, dict) else answer)
    except (ValueError, RecursionError):
        pass
    line = " ".join(body.split())[:200].rstrip(".")
    return f" ({line})" if line else ""


def _without(key: str, message: str) -> str:
    """A server's message without the key, which it may repeat."""
    return message.replace(key, "***") if key else message


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    try:
        return max(0.0, float(error.headers.get("Retry-After", "")))
    except ValueError:  # missing, or a date
        return None


def _advice(failure: Failure, key_variable: str) -> str:
    if "status 401" in str(failure) or "status 403" in str(failure):
        return f"Set {key_variable} to a valid key."
    if "status 404" in str(failure):
        return "Check the URL and the model name."
    return "Check the server." if failure.is_final else "Check that the server is running, or try again later."
