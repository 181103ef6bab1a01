"""The border to HTTP: an endpoint checks the key, reads and parses the body, calls its handler, and writes the answer.

An endpoint is an ASGI application of its own. Errors before, in and after the handler take the shape of its dialect.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from starlette.types import Receive, Scope, Send

from twinvec.server.problems import Dialect, Problem, as_problem

if TYPE_CHECKING:
    from twinvec.server.app import Service
    from twinvec.server.models import Job, Models

__all__ = ["Call", "Endpoint", "Handler", "Rendered"]

logger = logging.getLogger(__name__)

WATCH_AFTER_S = 0.1
DISCARD_S, PAUSE_S = 5.0, 0.2  # read a body that is too large for so long, or until the client pauses


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer that is not JSON, or has its own headers or status."""

    content: bytes
    media_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class ClientGoneError(Exception):
    """The client has closed the connection."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler gets beside its request: the service, and the models that the caller's key may use (None: all)."""

    service: Service
    allowed: frozenset[str] | None = None
    path: Mapping[str, str] = field(default_factory=dict)  # values of the parts of the path in braces

    @property
    def models(self) -> Models:
        """The served models."""
        return self.service.models

    def model(self, name: str | None, job: Job) -> str:
        """The name of the model for a job; raises a Problem if there is none or if the key does not allow it."""
        if self.allowed is not None and not name:
            name = next((each for each in self.models.names(job) if each in self.allowed), None)
        chosen = self.models.resolve(name, job)
        if self.allowed is not None and chosen not in self.allowed:
            raise Problem("forbidden", f"This key may not use the model {chosen!r}.", "model")
        return chosen

    def visible_models(self) -> list[str]:
        """The names of the models that the key allows."""
        return [name for name in self.models.names() if self.allowed is None or name in self.allowed]

    def texts(self, given: str | Sequence[str], field: str) -> list[str]:
        """One text or several as a list; raises a Problem if there are none or too many."""
        texts = [given] if isinstance(given, str) else list(given)
        most = self.service.settings.limits.texts
        if not texts:
            raise Problem("invalid", f"{field!r} is empty. Send at least one text.", field)
        if len(texts) > most:
            raise Problem("too_large", f"{field!r} has {len(texts)} texts; a request may have {most}.", field)
        return texts


Handler = Callable[[Any, Call], Awaitable[object]]


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One operation: its paths, the type of its request (None: no body), its handler and its answer's type."""

    method: str
    paths: tuple[str, ...]
    handler: Handler
    dialect: Dialect
    request: Any = None
    response: Any = None
    is_open: bool = False  # needs no key
    media_type: str = "application/json"

    @property
    def summary(self) -> str:
        """The first line of the handler's documentation."""
        return (self.handler.__doc__ or "").partition("\n")[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        service: Service = scope["app"].state.service
        start = time.perf_counter()
        answer = await self._answer(service, scope, receive)
        if answer is not None:
            await write(send, answer)
            service.metrics.note(self.dialect.name, self.paths[0], answer.status, time.perf_counter() - start)

    async def _answer(self, service: Service, scope: Scope, receive: Receive) -> Rendered | None:
        """The answer, or None if the client has gone."""
        watch = Watch(receive, service.settings.limits.timeout_s)
        body = Body(service)
        try:
            allowed = service.gate.admit(scope, needs_key=not self.is_open)
            call = Call(service, allowed, scope.get("path_params", {}))
            request = None
            if self.request is not None:
                request = self._parse(await body.read(scope, receive))
            watch.listen()
            return as_rendered(await self.handler(request, call))
        except asyncio.CancelledError:
            if watch.reason is None:
                raise
            problem = TimeoutError() if body.is_complete or self.request is None else slow_body()
            return self.problem(problem) if watch.reason == "late" else None
        except ClientGoneError:
            return None
        except Exception as error:
            return self.problem(error)
        finally:
            watch.stop()
            body.forget()

    def problem(self, error: Exception) -> Rendered:
        """An error in the dialect's shape."""
        problem = as_problem(error)
        if problem.kind == "internal":
            logger.error("%s %s failed.", self.method, self.paths[0], exc_info=error)
        status, content = self.dialect.render(problem)
        return Rendered(msgspec.json.encode(content), status=status, headers=problem.headers)

    def _parse(self, body: bytes) -> object:
        try:
            return decoder(self.request).decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem("invalid", f"The body is not valid: {error}.") from error


class Watch:
    """Cancels the handler when its time is over, or when the client closes the connection; ``reason`` says which."""

    __slots__ = ("_loop", "_owner", "_receive", "_task", "_timers", "reason")

    def __init__(self, receive: Receive, seconds: float) -> None:
        self.reason: Literal["late", "gone"] | None = None
        self._receive = receive
        self._owner = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timers = [self._loop.call_later(seconds, self._cancel, "late")]

    def listen(self) -> None:
        """Watch the connection from soon on: most requests are answered before."""
        self._timers.append(self._loop.call_later(WATCH_AFTER_S, self._begin))

    def stop(self) -> None:
        """End watching."""
        for timer in self._timers:
            timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._cancel("gone")

    def _cancel(self, reason: Literal["late", "gone"]) -> None:
        self.reason = self.reason or reason
        if self._owner is not None:
            self._owner.cancel()


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - any type that msgspec knows
    """The decoder of a type, built once."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]


class Body:
    """The body of a request, counted with those of all other unfinished requests."""

    __slots__ = ("_n_bytes", "_service", "is_complete")

    def __init__(self, service: Service) -> None:
        self.is_complete = False
        self._service = service
        self._n_bytes = 0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Read it all; raises a Problem if it is too large, or if too much is pending."""
        limits = self._service.settings.limits
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > limits.body_bytes:
            await discard(receive)
            raise too_large(limits.body_bytes)
        if self._service.n_pending_bytes > limits.pending_bytes:
            raise Problem("overloaded", "Too many requests are waiting. Try again later.", headers={"retry-after": "1"})
        parts: list[bytes] = []
        while not self.is_complete:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            parts.append(message.get("body", b""))
            self._n_bytes += len(parts[-1])
            self._service.n_pending_bytes += len(parts[-1])
            if self._n_bytes > limits.body_bytes:
                parts.clear()
                await discard(receive)
                raise too_large(limits.body_bytes)
            self.is_complete = not message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def forget(self) -> None:
        """The request is finished."""
        self._service.n_pending_bytes -= self._n_bytes


async def discard(receive: Receive) -> None:
    """Read on for a while and forget it: a client that still sends when the connection ends never sees the answer."""
    end = time.monotonic() + DISCARD_S
    with suppress(asyncio.TimeoutError):
        while time.monotonic() < end:
            message = await asyncio.wait_for(receive(), PAUSE_S)
            if not message.get("more_body", False):
                return


def slow_body() -> Problem:
    """A body that did not arrive in time."""
    return Problem("slow_body", "The body did not arrive in time.", headers={"connection": "close"})


def too_large(limit: int) -> Problem:
    """A body over the limit. Its end may not have been read, so the connection ends."""
    return Problem("too_large", f"The body is larger than {limit} bytes.", headers={"connection": "close"})


def as_rendered(answer: object) -> Rendered:
    """An answer as bytes."""
    return answer if isinstance(answer, Rendered) else Rendered(msgspec.json.encode(answer))


async def write(send: Send, answer: Rendered) -> None:
    """Send an answer."""
    headers = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", str(len(answer.content)).encode()),
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
