"""Models behind an HTTP server: Twinvec's own, or any that is compatible with OpenAI's."""

from twinvec.remote.async_client import AsyncClient
from twinvec.remote.client import Client

__all__ = ["AsyncClient", "Client"]
