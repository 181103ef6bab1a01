"""What can go wrong with a request: one table of problems and HTTP statuses, and the mapping from errors to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil

from twinvec.errors import InputError, TextTooLongError, TwinvecError, UnknownNameError
from twinvec.server.batching import QueueFullError

__all__ = ["STATUS", "Dialect", "Problem", "as_problem", "unknown_model"]

# kind -> HTTP status; a dialect may use another
STATUS: dict[str, int] = {
    "invalid": 400,
    "no_key": 401,
    "forbidden": 403,
    "not_found": 404,
    "unknown_model": 404,
    "wrong_method": 405,
    "slow_body": 408,
    "too_large": 413,
    "rate_limit": 429,
    "overloaded": 429,
    "internal": 500,
    "not_ready": 503,
    "timeout": 504,
}


@dataclass(eq=False)
class Problem(Exception):
    """An answer other than success. ``param`` is the field of the request at fault, if one is."""

    kind: str
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Dialect:
    """A family of clients: its name, its error body, and the statuses in which it differs."""

    name: str
    error: Callable[[Problem, int], object]
    statuses: Mapping[str, int] = field(default_factory=dict)

    def render(self, problem: Problem) -> tuple[int, object]:
        """The status and the body of a problem."""
        status = self.statuses.get(problem.kind, STATUS[problem.kind])
        return status, self.error(problem, status)


def unknown_model(name: str, known: tuple[str, ...], job: str) -> Problem:
    """A model that is not served, or not for this job."""
    return Problem("unknown_model", str(UnknownNameError(f"model for {job}", name, known)), "model")


def retry_after(seconds: float) -> dict[str, str]:
    """The header that tells a client when to come back."""
    return {"retry-after": str(max(1, ceil(seconds)))}


def as_problem(error: Exception) -> Problem:
    """The problem behind an error; an unexpected error tells the client nothing about the server."""
    match error:
        case Problem():
            return error
        case QueueFullError(retry_s=retry_s):
            message = "Too many texts are waiting. Try again later."
            return Problem("overloaded", message, headers=retry_after(retry_s))
        case TimeoutError():
            return Problem("timeout", "The request took longer than the server allows.")
        case TextTooLongError():
            return Problem("too_large", str(error))
        case InputError() | UnknownNameError():
            return Problem("invalid", str(error))
        case TwinvecError():
            return Problem("internal", error.problem)
        case _:
            return Problem("internal", "The server failed. Its log says why.")
