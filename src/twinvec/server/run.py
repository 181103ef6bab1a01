"""Run the server until a signal ends it; every accepted request is answered first."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from types import FrameType

import uvicorn

from twinvec.errors import InputError
from twinvec.server.app import Service, create_app
from twinvec.server.settings import ServerSettings

__all__ = ["run_server"]

SWITCH_S = 0.0005  # between threads: a batch that ends must not wait 5 ms for the event loop
BACKLOG = 4096


class DrainingServer(uvicorn.Server):
    """A uvicorn server that stops in two steps.

    After a signal it is no longer ready, and still answers what arrives for ``drain_s`` seconds: requests on their way
    are not lost. Then it takes no new connections and waits for the open requests. The exit code is 0.
    """

    def __init__(self, config: uvicorn.Config, service: Service, on_start: Callable[[str], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, and tell the address."""
        await super().startup(sockets)
        self._service.on_failure = self._drain
        if self._service.failure is not None:
            self.should_exit = True
        if not self.should_exit:
            port = self.servers[0].sockets[0].getsockname()[1]
            names = ", ".join(self._service.models.names())
            self._on_start(f"Serving {names} on http://{self.config.host}:{port}")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals that end the server, until it has ended."""
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; a second signal stops at once."""
        if self._service.is_draining:
            self.should_exit = self.force_exit = sig == signal.SIGINT or self.force_exit
            return
        self._service.is_draining = True
        asyncio.get_running_loop().call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(self._service.settings.drain_s, setattr, self, "should_exit", True)


def run_server(settings: ServerSettings, on_start: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGTERM or SIGINT, then answer every accepted request and return.

    ``on_start`` gets a line with the address when the server listens.
    """
    check_address(settings)
    sys.setswitchinterval(SWITCH_S)
    raise_file_limit()
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        backlog=BACKLOG,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(settings.limits.timeout_s) + 5,
        lifespan="on",
        ws="none",
    )
    service: Service = app.state.service
    DrainingServer(config, service, on_start).run()
    if service.failure is not None:
        raise service.failure


def check_address(settings: ServerSettings) -> None:
    """Refuse an address that others can reach, unless clients need a key or the user insists."""
    if not settings.is_local and settings.keys is None and not settings.force_public:
        raise InputError(
            f"Others can reach the address {settings.host!r}, and no key is set.",
            hint="Give keys with --keys, or use --host 127.0.0.1 behind a proxy, or insist with --force-public.",
        )


def raise_file_limit() -> None:
    """Allow as many open connections as the system does."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
