"""The application: one table of endpoints over one service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from twinvec.collection import Collection
from twinvec.errors import TwinvecError
from twinvec.server import health
from twinvec.server.dialects import cohere, ollama, openai, tei, vllm
from twinvec.server.metrics import Metrics
from twinvec.server.models import Models
from twinvec.server.problems import Problem
from twinvec.server.protection import LOCAL_HOSTS, Gate, SecureHeaders, read_keys
from twinvec.server.settings import ServerSettings
from twinvec.server.wire import Endpoint

__all__ = ["Service", "create_app"]

PAGE = Path(__file__).parent / "page"
DIALECTS = (openai, tei, cohere, vllm, ollama, health)  # each has ENDPOINTS
DROP_EVERY_S = 5.0


class Application(Starlette):
    """A Starlette application that calls endpoints with a fixed path directly: matching every route takes longer."""

    table: Mapping[tuple[str, str], ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        endpoint = self.table.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if endpoint is None:
            await super().__call__(scope, receive, send)
        else:
            scope["app"] = self
            await endpoint(scope, receive, send)


class Service:
    """What all endpoints share."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.models = Models(settings)
        self.metrics = Metrics(self.models)
        self.collections: Mapping[str, Collection] = {
            name: Collection.open(folder) for name, folder in settings.collections.items()
        }
        self.endpoints = all_endpoints()
        self.gate = open_gate(settings)
        self.n_pending_bytes = 0
        self.is_ready = False
        self.is_draining = False
        self.failure: TwinvecError | None = None  # a default model that cannot be loaded
        self.on_failure: Callable[[], None] = lambda: None


def open_gate(settings: ServerSettings) -> Gate:
    """Read the keys; without keys, only this machine's names are accepted as the host, unless the user insists."""
    if settings.keys is not None:
        return Gate(read_keys(settings.keys), origins=frozenset(settings.cors))
    is_any = settings.force_public and not settings.is_local
    hosts = None if is_any else frozenset([*LOCAL_HOSTS, *settings.allowed_hosts])
    return Gate({}, hosts, frozenset(settings.cors))


def create_app(settings: ServerSettings) -> Starlette:
    """The application for some settings. Models are found now, and loaded when the server starts or at first use.

    ``app.state`` has ``models``, ``settings`` and ``collections``.
    """
    service = Service(settings)
    secured = partial(SecureHeaders, is_draining=lambda: service.is_draining)
    middleware = [Middleware(secured)]
    if settings.cors:
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=settings.cors, allow_methods=["*"], allow_headers=["*"])
        )
    app = Application(
        routes=[*as_routes(service.endpoints), *page_routes()],
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={HTTPException: unknown_path},
    )
    if not settings.cors:
        fixed = [(each.method, path, each) for each in service.endpoints for path in each.paths if "{" not in path]
        app.table = {(method, path): secured(each) for method, path, each in fixed}
    app.state.service = service
    app.state.models, app.state.settings, app.state.collections = service.models, settings, service.collections
    return app


def all_endpoints() -> list[Endpoint]:
    """The table of all operations."""
    modules: list[Any] = [*DIALECTS]
    if find_spec("twinvec.server.workbench"):
        modules.append(import_module("twinvec.server.workbench"))
    return [endpoint for module in modules for endpoint in module.ENDPOINTS]


def as_routes(endpoints: list[Endpoint]) -> list[BaseRoute]:
    """A route for each path of each endpoint."""
    return [Route(path, each, methods=[each.method]) for each in endpoints for path in each.paths]


def page_routes() -> list[BaseRoute]:
    """The page at ``/``, and its files under ``/page``."""
    if not PAGE.is_dir():
        return []
    return [Route("/", lambda _: FileResponse(PAGE / "index.html")), Mount("/page", StaticFiles(directory=PAGE))]


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Load the default models, drop unused ones from time to time, and finish all work at the end."""
    service: Service = app.state.service

    async def start() -> None:
        try:
            await service.models.preload()
        except TwinvecError as error:
            service.failure = error
            service.on_failure()
            return
        service.is_ready = True
        while True:
            await asyncio.sleep(DROP_EVERY_S)
            service.models.drop_unused()

    task = asyncio.create_task(start())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await asyncio.to_thread(service.models.close)


async def unknown_path(request: Request, error: Exception) -> Response:
    """An unknown path or method, in the shape that most clients read."""
    assert isinstance(error, HTTPException)
    kind = "wrong_method" if error.status_code == 405 else "not_found"
    problem = Problem(kind, f"{request.method} {request.url.path[:200]} is not a path of this server. See /docs.")
    answer = openai.ENDPOINTS[0].problem(problem)
    return Response(answer.content, answer.status, media_type=answer.media_type)
