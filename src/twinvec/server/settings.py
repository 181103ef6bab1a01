"""What the server serves and what it allows: settings, checked once, and models given as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any

from twinvec.choices import DEFAULT_MODEL
from twinvec.engine.batches import usable_cores
from twinvec.errors import InputError, UnknownNameError, check_at_least

__all__ = ["Limits", "ModelSpec", "ServerSettings"]


def _flag(word: str) -> bool:
    if word not in ("true", "false"):
        raise ValueError
    return word == "true"


# Options of a model, and how to read their values.
OPTIONS: dict[str, Callable[[str], object]] = {
    "precision": str,
    "readout": str,
    "long": str,
    "runtime": str,
    "device": str,
    "revision": str,
    "truncate_dim": int,
    "deterministic": _flag,
    "trust_pickle": _flag,
    "offline": _flag,
    "activation": str,  # of a cross-encoder
    "label": str,
    "max_tokens": int,
    "matryoshka": _flag,  # the model was trained for shorter vectors
}
SERVER_OPTIONS = ("matryoshka",)  # those that ``load`` does not know


@dataclass(frozen=True)
class ModelSpec:
    """A model to serve: the name that clients use, where it is, and how to run it.

    >>> spec = ModelSpec.parse("small=models/minilm,precision=int8")
    >>> spec.name, spec.source, spec.arguments["precision"]
    ('small', 'models/minilm', 'int8')
    """

    name: str
    source: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> ModelSpec:
        """Parse ``NAME=FOLDER,option=value,...`` or only a name or folder; a folder is served under its own name."""
        model, *pairs = text.split(",")
        name, found, source = model.partition("=")
        if not found:
            name, source = (Path(model).resolve().name if Path(model).is_dir() else model), model
        if not name or not source:
            raise InputError(f"Invalid model {text!r}.", hint="Write NAME=FOLDER, or only a model name or folder.")
        return cls(name, source, MappingProxyType(dict(_option(pair) for pair in pairs)))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of ``load`` or ``load_scorer``."""
        return {name: value for name, value in self.options.items() if name not in SERVER_OPTIONS}

    @property
    def is_matryoshka(self) -> bool:
        """Whether clients may ask for shorter vectors."""
        return bool(self.options.get("matryoshka", False))


def _option(pair: str) -> tuple[str, object]:
    name, _, value = pair.partition("=")
    if name not in OPTIONS:
        raise UnknownNameError("option of a model", name, OPTIONS)
    try:
        return name, OPTIONS[name](value)
    except ValueError as error:
        raise InputError(f"Invalid value {value!r} for the option {name} of a model.") from error


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for, and how much may wait."""

    body_bytes: int = 8 << 20
    texts: int = 2048
    tokens: int = 262_144
    queued_texts: int = 8192
    pending_bytes: int = 256 << 20  # bodies of all unfinished requests
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        check_at_least(1, body_bytes=self.body_bytes, texts=self.texts, tokens=self.tokens)
        check_at_least(1, queued_texts=self.queued_texts, pending_bytes=self.pending_bytes)
        if not self.timeout_s > 0:
            raise InputError(f"timeout_s must be more than 0, got {self.timeout_s}.")


@dataclass(frozen=True)
class ServerSettings:
    """Everything that ``twinvec serve`` can be told.

    ``collections`` maps names to folders. ``cors`` are origins whose pages may call the server. ``memory`` is the
    largest total size of loaded models in bytes; with ``idle_s``, a model unused for so long is dropped.
    ``allowed_hosts`` are further names of a server without keys, as clients write them in the header Host.
    """

    models: tuple[ModelSpec, ...] = (ModelSpec(DEFAULT_MODEL, DEFAULT_MODEL),)
    collections: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8080
    keys: Path | None = None
    force_public: bool = False
    limits: Limits = Limits()
    threads: int | None = None
    wait_ms: float = 2.0
    memory: int | None = None
    idle_s: float | None = None
    cors: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    accept_token_ids: bool = False
    drain_s: float = 0.5

    def __post_init__(self) -> None:
        check_at_least(1, threads=self.threads)
        check_at_least(0, wait_ms=self.wait_ms, idle_s=self.idle_s, drain_s=self.drain_s, port=self.port)
        if not self.models:
            raise InputError("There is no model to serve.", hint="Name at least one.")
        names = [spec.name for spec in self.models]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise InputError(f"Two models have the name {double!r}.", hint="Give one another name: NAME=FOLDER.")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def n_workers(self) -> int:
        """Number of batches that run in parallel."""
        return self.threads or usable_cores()
