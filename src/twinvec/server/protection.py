"""Who may call: API keys, their rates and models, and the checks and headers that protect users of browsers."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinvec.errors import InputError
from twinvec.server.problems import Problem, retry_after

__all__ = ["LOCAL_HOSTS", "Gate", "Key", "SecureHeaders", "new_key", "read_keys"]

KEY = re.compile(r"tv_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
PREFIX = "sha256:"
LOCAL_HOSTS = "localhost", "127.0.0.1", "[::1]"
SECURE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True)
class Key:
    """A line of a key file: who, the digest of the secret, requests per minute (None: any), models (None: all)."""

    name: str
    id: str
    digest: str
    rate: float | None = None
    models: frozenset[str] | None = None

    @classmethod
    def parse(cls, line: str) -> Key:
        """Parse ``NAME ID sha256:DIGEST [rate=N] [models=A,B]``."""
        name, id_, digest, *options = [*line.split(), "", ""]
        given = dict(option.partition("=")[::2] for option in options if option)
        if not re.fullmatch(r"[0-9a-f]{8}", id_) or not re.fullmatch(f"{PREFIX}[0-9a-f]{{64}}", digest):
            raise InputError("A line of the key file is not valid.", hint="Make lines with: twinvec key NAME.")
        unknown = set(given) - {"rate", "models"}
        try:
            rate = float(given["rate"]) if "rate" in given else None
        except ValueError:
            rate = 0.0
        if unknown or (rate is not None and not rate > 0):
            raise InputError(f"The options of the key {name!r} are not valid.", hint="Use rate=NUMBER and models=A,B.")
        models = frozenset(given["models"].split(",")) if "models" in given else None
        return cls(name, id_, digest.removeprefix(PREFIX), rate, models)

    def line(self) -> str:
        """The key as a line of a key file."""
        rate = "" if self.rate is None else f" rate={self.rate:g}"
        models = "" if self.models is None else f" models={','.join(sorted(self.models))}"
        return f"{self.name} {self.id} {PREFIX}{self.digest}{rate}{models}"


def new_key(name: str, *, rate: float | None = None, models: Iterable[str] = ()) -> tuple[str, Key]:
    """A new secret, and its key without the secret."""
    if not re.fullmatch(r"[\w.@-]{1,100}", name):
        raise InputError(f"Invalid name {name!r}.", hint="Use letters, digits, and . _ @ -")
    id_, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    return f"tv_{id_}_{secret}", Key(name, id_, digest_of(secret), rate, frozenset(models) or None)


def digest_of(secret: str) -> str:
    """The digest that is stored. A secret has 256 random bits, so a fast digest is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def read_keys(file: Path) -> dict[str, Key]:
    """The keys of a file, by id; empty lines and lines that start with # are skipped."""
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    keys = [Key.parse(line) for line in lines if line and not line.startswith("#")]
    if not keys:
        raise InputError(f"{file} has no keys.", hint=f"Add one: twinvec key NAME >> {file}")
    return {key.id: key for key in keys}


@dataclass
class Bucket:
    """Requests that a key may send now: refilled with its rate, and never more than for one minute."""

    rate: float
    level: float
    at: float

    def take(self, now: float) -> float:
        """Take one; returns 0, or the seconds until there is one."""
        self.level = min(max(1.0, self.rate), self.level + (now - self.at) * self.rate / 60)
        self.at = now
        if self.level < 1:
            return (1 - self.level) * 60 / self.rate
        self.level -= 1
        return 0.0


@dataclass
class Gate:
    """Admits requests: with a key and within its rate, or without keys only if no foreign web page sent them.

    ``hosts`` are the names of this server in the header Host (None: any). A server without keys needs them: a web page
    could otherwise reach it under a name that it lets point to this machine.
    """

    keys: dict[str, Key]
    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    def admit(self, scope: Scope, *, needs_key: bool = True) -> frozenset[str] | None:
        """The models that the caller may use (None: all); raises a Problem."""
        headers = dict(scope["headers"])
        self._check_browser(headers)
        if not self.keys or not needs_key:
            return None
        key = self._key(presented(headers))
        if key.rate is not None:
            now = self.clock()
            bucket = self._buckets.setdefault(key.id, Bucket(key.rate, max(1.0, key.rate), now))
            if wait_s := bucket.take(now):
                message = f"This key may send {key.rate:g} requests per minute."
                raise Problem("rate_limit", message, headers=retry_after(wait_s))
        return key.models

    def _key(self, given: str) -> Key:
        match = KEY.fullmatch(given)
        known = self.keys.get(match[1]) if match else None
        stored = known.digest if known else digest_of("")
        is_right = hmac.compare_digest(stored, digest_of(match[2] if match else given))
        if known is None or not is_right:
            message = "The API key is not valid." if given else "An API key is needed: Authorization: Bearer KEY."
            raise Problem("no_key", message, headers={"www-authenticate": "Bearer"})
        return known

    def _check_browser(self, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self.hosts is not None and re.sub(r":\d+$", "", host).lower() not in self.hosts:
            raise Problem("forbidden", f"The host {host[:100]!r} is not this server. Allow it with --allow-host.")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if headers.get(b"sec-fetch-site") == b"cross-site" and not ({origin, "*"} & self.origins):
            raise Problem("forbidden", "Pages of other sites may not call this server. Allow them with --cors.")


def presented(headers: dict[bytes, bytes]) -> str:
    """The key of a request, from one of the headers that clients use; empty if there is none."""
    given = headers.get(b"authorization", b"")
    kind, _, value = given.partition(b" ")
    if kind.lower() != b"bearer":
        value = headers.get(b"x-api-key") or headers.get(b"api-key") or b""
    return value.strip().decode("latin-1")


class SecureHeaders:
    """Adds security headers to every answer, and ends connections while the server drains."""

    def __init__(self, app: ASGIApp, is_draining: Callable[[], bool]) -> None:
        self._app = app
        self._is_draining = is_draining
        self._headers = [(name.encode(), value.encode()) for name, value in SECURE_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
                if self._is_draining():
                    MutableHeaders(raw=message["headers"])["connection"] = "close"
            await send(message)

        await self._app(scope, receive, send_secured)
