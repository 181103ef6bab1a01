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

from twinvec.errors import InputError

__all__ = ["Retries", "post"]

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5  # doubled after every try
LONGEST_PAUSE_S = 30.0  # also the most that is waited for a server's Retry-After
WORTH_ANOTHER_TRY = 408, 425, 429, 500, 502, 503, 504


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to try again, and how long to wait for an answer."""

    n: int
    timeout_s: float
    first_pause_s: float = FIRST_PAUSE_S


class Failure(Exception):
    """One try went wrong. ``pause_s`` is how long the server asks to wait; ``is_final`` if another try is no use."""

    def __init__(self, problem: str, *, pause_s: float | None = None, is_final: bool = False) -> None:
        super().__init__(problem)
        self.pause_s = pause_s
        self.is_final = is_final


def post(url: str, content: object, *, key_variable: str, retries: Retries, request: str) -> bytes:
    """The body of a good answer; ``request`` is what errors call the request."""
    asked = urllib.request.Request(url, json.dumps(content).encode(), _headers(key_variable), method="POST")
    pause_s = retries.first_pause_s
    for n_tried in range(1, retries.n + 2):
        try:
            return _try(asked, retries.timeout_s)
        except Failure as failure:
            if failure.is_final or n_tried > retries.n:
                tries = f" in {n_tried} tries" if n_tried > 1 else ""
                hint = _advice(failure, key_variable)
                raise InputError(f"{request} failed{tries}: {failure}", hint=hint) from failure
            wait_s = min(pause_s if failure.pause_s is None else failure.pause_s, LONGEST_PAUSE_S)
            logger.warning("%s failed: %s Trying again in %.1f s.", request, failure, wait_s)
            time.sleep(wait_s)
            pause_s *= 2
    raise AssertionError("unreachable")


def _headers(key_variable: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "twinvec"}
    key = os.environ.get(key_variable, "").strip()
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers


def _try(asked: urllib.request.Request, timeout_s: float) -> bytes:
    try:
        with urllib.request.urlopen(asked, timeout=timeout_s) as answer:
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        with error:
            said = _said(error)
        is_final = error.code not in WORTH_ANOTHER_TRY
        raise Failure(f"status {error.code}{said}.", pause_s=_retry_after(error), is_final=is_final) from error
    except TimeoutError as error:
        raise Failure(f"no answer within {timeout_s:g} s.") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise Failure(f"no answer within {timeout_s:g} s.") from error
        raise Failure(f"no connection ({error.reason}).") from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise Failure(f"the answer broke off ({type(error).__name__}).") from error


def _said(error: urllib.error.HTTPError) -> str:
    """What the server says of its error, in one line."""
    try:
        body = error.read(2000).decode("utf-8", errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    try:
        told = json.loads(body)
        told = told.get("error", told) if isinstance(told, dict) else body
        body = str(told.get("message", told) if isinstance(told, dict) else told)
    except ValueError:
        pass
    line = " ".join(body.split())[:200].rstrip(".")
    return f" ({line})" if line else ""


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
