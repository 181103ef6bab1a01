"""One JSON request by HTTP, tried again where that can help; every error names the request."""

from __future__ import annotations

import http.client
import json
import logging
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from twinvec.errors import InputError
from twinvec.evaluate.http_client import NoAnswer, RedirectRefused, is_loopback, open_url, read_parts

__all__ = ["Retries", "post"]

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
    told = answer.headers.get("Content-Length", "")
    body = bytearray()
    for part in read_parts(answer, timeout_s=timeout_s, max_s=timeout_s):
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise Failure(f"the answer has more than {MAX_ANSWER_BYTES >> 20} MB.", is_final=True)
    if told.isdecimal() and len(body) < int(told):
        raise Failure(f"the answer broke off after {len(body):,} of {int(told):,} bytes.")
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
        told = json.loads(body)
        told = told.get("error", told) if isinstance(told, dict) else body
        body = str(told.get("message", told) if isinstance(told, dict) else told)
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
