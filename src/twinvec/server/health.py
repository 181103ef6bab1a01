"""The endpoints about the server itself: health, metrics and documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from twinvec.server.dialects.openai import DIALECT as OPENAI
from twinvec.server.metrics import CONTENT_TYPE_LATEST
from twinvec.server.openapi import STYLE, describe, docs_page
from twinvec.server.problems import Dialect
from twinvec.server.wire import Call, Endpoint, Rendered

if TYPE_CHECKING:
    from twinvec.server.app import Service

__all__ = ["ENDPOINTS"]

DIALECT = Dialect("server", OPENAI.error)


class Health(msgspec.Struct):
    """``status`` is starting, ready or draining."""

    status: str


async def health(_: None, call: Call) -> Rendered:
    """Whether the server is ready: 200, or 503 while it loads its models or drains."""
    status = status_of(call.service)
    return Rendered(msgspec.json.encode(Health(status)), status=200 if status == "ready" else 503)


async def alive(_: None, call: Call) -> Health:
    """Whether the server runs: always 200."""
    return Health(status_of(call.service))


async def metrics(_: None, call: Call) -> Rendered:
    """Counts in the format of Prometheus."""
    return Rendered(call.service.metrics.render(), CONTENT_TYPE_LATEST)


async def openapi(_: None, call: Call) -> dict[str, Any]:
    """This description."""
    return describe(call.service.endpoints, has_keys=bool(call.service.gate.keys))


async def docs(_: None, call: Call) -> Rendered:
    """A page about all operations."""
    return Rendered(docs_page(call.service.endpoints).encode(), "text/html; charset=utf-8")


async def style(_: None, call: Call) -> Rendered:
    """The style sheet of the documentation."""
    return Rendered(STYLE.encode(), "text/css; charset=utf-8")


def status_of(service: Service) -> str:
    """The state of the server in one word."""
    if service.is_draining:
        return "draining"
    return "ready" if service.is_ready else "starting"


def _open(path: str, handler: object, response: object = None, media_type: str = "application/json") -> Endpoint:
    return Endpoint("GET", (path,), handler, DIALECT, None, response, True, media_type)  # type: ignore[arg-type]


ENDPOINTS = (
    _open("/health", health, Health),
    _open("/health/live", alive, Health),
    Endpoint("GET", ("/metrics",), metrics, DIALECT, media_type="text/plain"),
    _open("/openapi.json", openapi, dict[str, Any]),
    _open("/docs", docs, media_type="text/html"),
    _open("/docs/style.css", style, media_type="text/css"),
)
