"""``AsyncClient``: a model behind an HTTP server, for programs that use asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import Role
from twinvec.remote.client import Client, ServerAddress
from twinvec.scorer import Pair, Ranked
from twinvec.types import Vectors

__all__ = ["AsyncClient"]

Result = TypeVar("Result")


class AsyncClient(ServerAddress):
    """A model behind a server, with methods to await. The arguments are those of :class:`twinvec.Client`.

    It runs a :class:`twinvec.Client` in ``n_connections`` threads of its own, so the event loop is never blocked, and
    retries, keys and connections behave the same. More calls than that wait for a free thread. A canceled call that has
    already been sent is not interrupted; its result is dropped. ``client`` is the client inside, for its ``name``,
    ``identity`` and ``width``.

    >>> async def embed(texts):
    ...     async with AsyncClient("http://127.0.0.1:8080") as client:
    ...         return await client.embed(texts)
    """

    @cached_property
    def client(self) -> Client:
        """The client that sends the requests."""
        return Client(**{each.name: getattr(self, each.name) for each in fields(self)})

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n_connections, thread_name_prefix="twinvec-client")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``; see ``Client.embed``."""
        return await self._run(partial(self.client.embed, texts, role=role))

    async def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``; see ``Client.score``."""
        return await self._run(partial(self.client.score, pairs))

    async def rank(self, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
        """The ``k`` best texts for a query, best first; see ``Client.rank``."""
        return await self._run(partial(self.client.rank, query, texts, k))

    async def close(self) -> None:
        """Wait for the calls that are running, then end the threads and close the connections."""
        threads = self.__dict__.pop("_threads", None)
        if threads is not None:
            await asyncio.get_running_loop().run_in_executor(None, threads.shutdown)
        self.client.close()

    async def _run(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
