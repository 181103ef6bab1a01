"""The served models: found at the start, loaded at first use, dropped when unused and over the memory limit."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import Role
from twinvec.embedder import Embedder, ModelEmbedder, as_embedder, width_of
from twinvec.errors import TextTooLongError
from twinvec.model.hub import find_model
from twinvec.model.identity import engine_versions, model_files
from twinvec.model.tokenizer import check_texts
from twinvec.pairs.cross_encoder import CrossEncoder, is_scorer_folder, load_scorer
from twinvec.scorer import Pair, Scorer, is_scorer
from twinvec.server.batching import Batcher, Lane, QueueFullError
from twinvec.server.problems import Problem, unknown_model
from twinvec.server.settings import ModelSpec, ServerSettings
from twinvec.types import Vectors
from twinvec.vectors import unit_rows

__all__ = ["Embedded", "Job", "Models"]

Job = Literal["embedding", "scoring"]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

CALLS_PER_WORKER = 64  # of ``run``; more wait in vain


class Embedded(NamedTuple):
    """Vectors ``(n, width)`` and the number of tokens of each full text, ``(n,)``."""

    vectors: Vectors
    n_tokens: NDArray[np.int64]

    @property
    def n_read(self) -> int:
        """Tokens of all texts."""
        return int(self.n_tokens.sum())


@dataclass(eq=False)
class Slot:
    """One served model: where it is, and the model itself while it is loaded."""

    spec: ModelSpec
    job: Job
    n_bytes: int
    system: Any = None
    n_active: int = 0
    last_used: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def find(cls, spec: ModelSpec) -> Slot:
        """Find a model's folder; raises an error if there is none."""
        found = {name: spec.arguments[name] for name in ("revision", "offline", "trust_pickle") if name in spec.options}
        path = Path(find_model(spec.source, **found))
        n_bytes = sum(file.stat().st_size for file in model_files(path) if file.is_file())
        return cls(spec, "scoring" if is_scorer_folder(path) else "embedding", n_bytes)

    def open(self, threads: int) -> Any:  # noqa: ANN401 - an Embedder or a Scorer
        """Load the model."""
        if self.job == "scoring":
            return load_scorer(self.spec.source, threads=threads, **self.spec.arguments)
        embedder = as_embedder(self.spec.source, {**self.spec.arguments} or None)
        if isinstance(embedder, ModelEmbedder):
            embedder.arguments["threads"] = threads
            _ = embedder.encoder
        return embedder

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep the model while a request uses it."""
        self.n_active += 1
        try:
            yield
        finally:
            self.n_active -= 1
            self.last_used = time.monotonic()


class Models:
    """All served models by name. The first embedding model and the first scorer are the defaults."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._slots = {spec.name: Slot.find(spec) for spec in settings.models}
        self.batcher = Batcher(settings.n_workers, wait_s=settings.wait_ms / 1000, most=settings.limits.queued_texts)
        self._pool = ThreadPoolExecutor(settings.n_workers, thread_name_prefix="call")
        self._n_calls = 0

    def names(self, job: Job | None = None) -> tuple[str, ...]:
        """The names of the models, or of those for one job."""
        return tuple(name for name, slot in self._slots.items() if job in (None, slot.job))

    @property
    def default_embedder(self) -> str | None:
        """The model used if a request names none."""
        return next(iter(self.names("embedding")), None)

    @property
    def default_scorer(self) -> str | None:
        """The scorer used if a request names none."""
        return next(iter(self.names("scoring")), None)

    def count_loaded(self) -> int:
        """Number of models in memory."""
        return sum(slot.system is not None for slot in self._slots.values())

    def size_bytes(self, name: str) -> int:
        """The size of a model's files."""
        return self._slots[name].n_bytes

    def resolve(self, name: str | None, job: Job) -> str:
        """The name of a model for a job; raises a Problem for unknown names."""
        chosen = name or (self.default_embedder if job == "embedding" else self.default_scorer)
        if chosen is None:
            raise Problem("unknown_model", f"This server has no model for {job}.", "model")
        if chosen not in self._slots or self._slots[chosen].job != job:
            raise unknown_model(chosen, self.names(job), job)
        return chosen

    def job(self, name: str) -> Job:
        """Whether a model embeds or scores."""
        return self._slots[name].job

    async def describe(self, name: str) -> Description:
        """What decides the vectors or scores of a model, which is loaded for it."""
        slot = self._slots[name]
        with slot.used():
            return await self.run(description, await self._loaded(slot))

    async def embedder(self, name: str | None = None) -> Embedder:
        """An embedding model, loaded."""
        embedder: Embedder = await self._loaded(self._slots[self.resolve(name, "embedding")])
        return embedder

    async def checked_embedder(self, name: str, texts: list[str]) -> Embedder:
        """An embedding model, loaded; raises a Problem if the texts have more tokens than a request may have."""
        embedder = await self.embedder(name)
        if sum(map(len, texts)) > self._settings.limits.tokens:  # a token has at least one character
            self._refuse_above(int((await self.run(count_tokens, embedder, texts)).sum()))
        return embedder

    async def scorer(self, name: str | None = None) -> Scorer:
        """A scorer, loaded."""
        scorer: Scorer = await self._loaded(self._slots[self.resolve(name, "scoring")])
        return scorer

    async def embed(
        self,
        name: str | None,
        texts: Sequence[str],
        *,
        role: Role = "text",
        prompt_name: str | None = None,
        width: int | None = None,
        truncate: bool = True,
    ) -> Embedded:
        """Embed texts, in batches with those of other requests.

        ``width`` asks for shorter vectors, of length 1. With ``truncate=False``, a text that the model would cut raises
        TextTooLongError.
        """
        slot = self._slots[self.resolve(name, "embedding")]
        checked = check_texts(texts)
        with slot.used():
            embedder = await self.checked_embedder(slot.spec.name, checked)
            check_width(width, embedder, slot.spec)
            lane = Lane((slot.spec.name, role, prompt_name), lambda batch: embed(embedder, batch, role, prompt_name))
            rows = await self.batcher.run(lane, checked, [estimate_tokens(text) for text in checked])
        n_tokens = np.array([n for _, n in rows], dtype=np.int64)
        if not truncate and isinstance(embedder, ModelEmbedder):
            refuse_long(n_tokens, embedder.encoder.max_tokens)
        vectors = np.stack([row for row, _ in rows])
        return Embedded(vectors if width in (None, vectors.shape[1]) else unit_rows(vectors[:, :width]), n_tokens)

    async def score(self, name: str | None, pairs: Sequence[Pair], *, raw: bool = False) -> NDArray[np.float32]:
        """Score pairs, in batches with those of other requests: ``(n,)``, or ``(n, labels)``.

        ``raw`` asks a cross-encoder for its logits.
        """
        slot = self._slots[self.resolve(name, "scoring")]
        check_texts(text for pair in pairs for text in pair)
        sizes = [estimate_tokens(first) + estimate_tokens(second) for first, second in pairs]
        self._refuse_above(sum(sizes))
        with slot.used():
            scorer = await self._loaded(slot)
            lane = Lane((slot.spec.name, "raw" if raw else "score"), lambda batch: list(score(scorer, batch, raw)))
            return np.asarray(await self.batcher.run(lane, pairs, sizes), dtype=np.float32)

    async def single_scores(self, name: str | None, pairs: Sequence[Pair], *, raw: bool = False) -> NDArray[np.float32]:
        """One score per pair, ``(n,)``; raises InputError if the model has several labels."""
        scorer = await self.scorer(name)
        if isinstance(scorer, CrossEncoder):
            scorer.check_single()
        return await self.score(name, pairs, raw=raw)

    async def rank(
        self, name: str | None, query: str, texts: Sequence[str], *, raw: bool = False
    ) -> tuple[list[int], list[float]]:
        """The rows of texts for a query, best first, and the score of each text in the order of ``texts``."""
        scores = await self.single_scores(name, [(query, text) for text in texts], raw=raw)
        return np.argsort(-scores, kind="stable").tolist(), scores.tolist()

    async def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Run blocking work off the event loop, in a bounded pool; raises QueueFullError."""
        if self._n_calls >= CALLS_PER_WORKER * self._settings.n_workers:
            raise QueueFullError(1.0)
        self._n_calls += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, lambda: function(*args, **named))
        finally:
            self._n_calls -= 1

    async def preload(self) -> None:
        """Load the default models, so that the first requests do not wait."""
        for name in (self.default_embedder, self.default_scorer):
            if name is not None:
                await self._loaded(self._slots[name])

    def drop_unused(self) -> None:
        """Drop models that were not used for ``idle_s`` seconds, and the longest unused ones over the memory limit."""
        settings, now = self._settings, time.monotonic()
        loaded = sorted((slot for slot in self._slots.values() if slot.system), key=lambda slot: slot.last_used)
        n_bytes = sum(slot.n_bytes for slot in loaded)
        for slot in loaded:
            is_over = settings.memory is not None and n_bytes > settings.memory
            is_old = settings.idle_s is not None and now - slot.last_used > settings.idle_s
            if not slot.n_active and (is_over or is_old):
                slot.system = None
                n_bytes -= slot.n_bytes

    def close(self) -> None:
        """Finish the work that waits, and end all threads."""
        self.batcher.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _loaded(self, slot: Slot) -> Any:  # noqa: ANN401 - an Embedder or a Scorer
        if slot.system is not None:
            return slot.system
        async with slot.lock:
            if slot.system is None:
                with slot.used():
                    slot.system = await self.run(slot.open, self._settings.n_workers)
                    self.drop_unused()
            return slot.system

    def _refuse_above(self, n_tokens: int) -> None:
        most = self._settings.limits.tokens
        if n_tokens > most:
            raise Problem("too_large", f"The texts have {n_tokens} tokens; a request may have {most}.")


class Description(NamedTuple):
    """A digest of all that decides a model's vectors or scores; of an embedding model also its vector space."""

    identity: str
    space: str | None = None
    width: int | None = None
    similarity: str | None = None


def description(system: Embedder | Scorer) -> Description:
    """Describe a model; its files are read."""
    parts = {"model": system.identity, "versions": engine_versions()}
    identity = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if is_scorer(system):
        return Description(identity)
    embedder = cast(Embedder, system)
    space = embedder.space if isinstance(embedder, ModelEmbedder) else embedder.identity
    return Description(identity, space, width_of(embedder), embedder.similarity)


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a text has, without reading it.

    The shares of words and letters were fitted to WordPiece on English sentences (standard deviation of the error: 1.9
    tokens). Other characters count as one token each.

    >>> estimate_tokens("A cat sits on the mat."), estimate_tokens("환불")
    (8, 5)
    """
    n_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    n_words = max(text.count(" "), n_ascii // 8)
    return 3 + n_words * 2 // 3 + n_ascii // 11 + len(text) - n_ascii


def embed(embedder: Embedder, texts: list[str], role: Role, prompt_name: str | None) -> list[tuple[Vectors, int]]:
    """The vector and the number of tokens of each text, in the calling thread."""
    if not isinstance(embedder, ModelEmbedder):
        vectors = embedder.embed(texts, role=role)
        return list(zip(vectors, count_tokens(embedder, texts).tolist(), strict=True))
    encoder = embedder.encoder.with_one_stream()
    block = encoder.encode_block(texts, prompt_name=prompt_name or encoder.prompt_for(role))
    assert block.n_tokens is not None
    return list(zip(block.vectors, block.n_tokens.tolist(), strict=True))


def score(scorer: Scorer, pairs: list[Pair], raw: bool) -> NDArray[np.float32]:
    """The scores of pairs, in the calling thread."""
    if isinstance(scorer, CrossEncoder):
        scorer = scorer.with_one_stream()
        if raw:
            scorer = replace(scorer, activation="none")
    return scorer.score(pairs)


def check_width(width: int | None, embedder: Embedder, spec: ModelSpec) -> None:
    """Raise a Problem if the model was not trained for vectors of this width."""
    own = width_of(embedder) if width is not None else 0
    if width is None or width == own:
        return
    if not spec.is_matryoshka:
        message = f"The model {spec.name!r} was not trained for shorter vectors; its width is {own}."
        raise Problem("invalid", f"{message} If it was, serve it with the option matryoshka=true.", "dimensions")
    if not 1 <= width <= own:
        raise Problem("invalid", f"The width must be 1 to {own}, got {width}.", "dimensions")


def count_tokens(embedder: Embedder, texts: list[str]) -> NDArray[np.int64]:
    """The number of tokens of each text; of words, if the embedder has no tokenizer."""
    if isinstance(embedder, ModelEmbedder):
        return embedder.encoder.count_tokens(texts)
    return np.array([len(text.split()) for text in texts], dtype=np.int64)


def refuse_long(n_tokens: NDArray[np.int64], most: int | None) -> None:
    """Raise TextTooLongError for the first text over the model's limit."""
    for index in np.flatnonzero(n_tokens > (most or n_tokens.max(initial=0))).tolist():
        raise TextTooLongError(
            f"Text {index} has {n_tokens[index]} tokens, but this model reads {most}.",
            hint="Shorten it, or set truncate to true.",
        )
