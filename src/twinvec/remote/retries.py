"""Requests with a key and bounded retries; every failure is one error that names the request."""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from twinvec.data.http_client import NoAnswer, RedirectRefused, is_loopback
from twinvec.errors import InputError
from twinvec.remote.connections import Connections, Reply

__all__ = ["KEY_VARIABLE", "OWN_KEY_VARIABLE", "Key", "Refused", "Retries", "find_key", "request_json"]

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5  # doubled after every attempt
LONGEST_PAUSE_S = 30.0  # also the limit for a server's Retry-After
WORTH_ANOTHER_TRY = 408, 425, 429, 500, 502, 503, 504
KEY_VARIABLE = "OPENAI_API_KEY"
OWN_KEY_VARIABLE = "TWINVEC_API_KEY"


class Refused(InputError):
    """The server answered a request with an error, given by its ``status``."""

    status = 0  # after pickling

    def __init__(self, problem: str, *, status: int, hint: str = "") -> None:
        super().__init__(problem, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Key:
    """The key to send to a server, empty if there is none, and what it comes from. It never appears in messages."""

    value: str
    source: str

    def headers(self) -> dict[str, str]:
        """The headers of a request."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "twinvec"}
        return {**headers, "Authorization": f"Bearer {self.value}"} if self.value else headers

    def hidden(self, message: str) -> str:
        """A server's message without the key, which it may repeat."""
        return message.replace(self.value, "***") if self.value else message


def find_key(address: str, api_key: str | None, variable: str | None) -> Key:
    """The key for a server, checked: ``api_key``, or the value of the environment variable.

    By default the variable is TWINVEC_API_KEY, or OPENAI_API_KEY if that is not set. The latter is not sent over
    plain http to another machine.

    >>> find_key("https://host/v1", "secret", None)
    Key(value='secret', source='api_key')
    """
    if api_key is not None:
        key = Key(api_key.strip(), "api_key")
    else:
        variable = variable or (OWN_KEY_VARIABLE if OWN_KEY_VARIABLE in os.environ else KEY_VARIABLE)
        key = Key(os.environ.get(variable, "").strip(), variable)
    if not key.value.isascii() or not key.value.isprintable():
        raise InputError(
            f"The key in {key.source} contains a line break or another invalid character.",
            hint="Set it to the key only.",
        )
    parts = urlsplit(address)
    if key.value and key.source == KEY_VARIABLE and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InputError(
            f"Refusing to send the key in {KEY_VARIABLE} to {parts.netloc} over plain http, where others can read it.",
            hint=f"Use https. On a trusted network, put the server's key in {OWN_KEY_VARIABLE}, or in another variable "
            f"named with --api-key-variable; if the server needs no key, set {OWN_KEY_VARIABLE} to nothing.",
        )
    return key


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of retries; ``stop`` ends them early, because another request of the same call has failed."""

    n: int
    stop: threading.Event
    first_pause_s: float = FIRST_PAUSE_S


class Failure(Exception):
    """A failed attempt. ``pause_s`` is the server's Retry-After; ``is_final`` means that a retry would be useless."""

    def __init__(
        self, problem: str, *, status: int = 0, pause_s: float | None = None, is_final: bool = False, hint: str = ""
    ) -> None:
        super().__init__(problem)
        self.status = status
        self.pause_s = pause_s
        self.is_final = is_final
        self.hint = hint


def request_json(
    connections: Connections, url: str, content: object | None, *, key: Key, retries: Retries, request: str
) -> bytes:
    """Post JSON, or get without ``content``, and return the body; ``request`` is the name of the request in errors."""
    body = None if content is None else json.dumps(content).encode()
    pause_s = retries.first_pause_s
    for n_tried in range(1, retries.n + 2):
        try:
            return _try(connections, url, body, key)
        except Failure as failure:
            if failure.is_final or n_tried > retries.n or retries.stop.is_set():
                raise _error(failure, n_tried, request, key) from failure
            wait_s = min(pause_s if failure.pause_s is None else failure.pause_s, LONGEST_PAUSE_S)
            logger.warning("%s failed: %s Retrying in %.1f s.", request, failure, wait_s)
            retries.stop.wait(wait_s)
            pause_s *= 2
    raise AssertionError("unreachable")


def _error(failure: Failure, n_tried: int, request: str, key: Key) -> InputError:
    tries = f" after {n_tried} attempts" if n_tried > 1 else ""
    problem, hint = f"{request} failed{tries}: {failure}", failure.hint or _advice(failure, key)
    return Refused(problem, status=failure.status, hint=hint) if failure.status else InputError(problem, hint=hint)


def _try(connections: Connections, url: str, body: bytes | None, key: Key) -> bytes:
    try:
        reply = connections.send("GET" if body is None else "POST", urlsplit(url).path or "/", body, key.headers())
    except RedirectRefused as error:
        hint = "Redirects are not followed, so that texts and keys go only where you send them. Use the final URL."
        raise Failure(f"{key.hidden(str(error))}.", is_final=True, hint=hint) from error
    except NoAnswer as error:
        raise Failure(f"{error}.", is_final=error.is_final) from error
    if reply.status < 300:
        return reply.body
    problem = f"status {reply.status}{key.hidden(_message(reply.body))}."
    is_final = reply.status not in WORTH_ANOTHER_TRY
    raise Failure(problem, status=reply.status, pause_s=_retry_after(reply), is_final=is_final)


def _message(raw: bytes) -> str:
    """The server's error message, in one line."""
    body = raw.decode("utf-8", errors="replace")
    try:
        answer = json.loads(body)
        answer = answer.get("error", answer) if isinstance(answer, dict) else body
        body = str(answer.get("message", answer) if isinstance(answer, dict) else answer)
    except (ValueError, RecursionError):
        pass
    line = " ".join(body.split())[:300].rstrip(".")
    return f" ({line})" if line else ""


def _retry_after(reply: Reply) -> float | None:
    try:
        return max(0.0, float(reply.headers.get("retry-after", "")))
    except ValueError:  # missing, or a date
        return None


def _advice(failure: Failure, key: Key) -> str:
    if failure.status in (401, 403):
        other = f" or {OWN_KEY_VARIABLE}" if key.source == KEY_VARIABLE else ""
        return "Pass a valid key." if key.source == "api_key" else f"Set {key.source}{other} to a valid key."
    if failure.status == 404:
        return "Check the URL and the model name."
    return "Check the server." if failure.is_final else "Check that the server is running, or try again later."
