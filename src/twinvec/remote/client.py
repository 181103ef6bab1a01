"""``Client``: a model behind an HTTP server, as an embedder and a scorer."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from itertools import count
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import Role
from twinvec.data.http_client import check_address
from twinvec.engine.batches import Streams
from twinvec.errors import InputError, UnknownNameError, shown
from twinvec.model.tokenizer import check_texts
from twinvec.remote.answers import ServerModel, parse_model, parse_models, parse_scores, parse_vectors
from twinvec.remote.connections import Connections
from twinvec.remote.retries import Refused, Retries, find_key, request_json
from twinvec.scorer import FunctionScorer, Pair, Ranked, checked_pairs, rank_texts
from twinvec.types import Vectors
from twinvec.vectors import checked_vectors

__all__ = ["Client", "ServerAddress"]

Item = TypeVar("Item")
Result = TypeVar("Result")

PROBE = "The quick brown fox jumps over the lazy dog, and nobody knows why."
MAX_TIMEOUT_S = 86_400
MAX_CHARACTERS = 1 << 17  # of the texts in a request, to stay below the limits of servers on bytes and tokens
NO_SUCH_ROUTE = 404, 405, 501


@dataclass(frozen=True, eq=False)
class ServerAddress:
    """The address of a server and the settings of requests, checked.

    Args:
        url: such as http://127.0.0.1:8080 or https://host/v1; ``#name`` at its end names the model.
        model: the server's name of the model; by default the server's own default.
        api_key: the key to send. By default it is read from the environment.
        key_variable: the environment variable with the key; by default TWINVEC_API_KEY, or OPENAI_API_KEY if that is
            not set. The latter is not sent over plain http to another machine.
        timeout_s: how long to wait for a response.
        n_retries: how often to repeat a request that failed: no connection, no response, or status 408, 425, 429 or
            5xx. A server's Retry-After is respected, up to 30 s.
        per_request: the largest number of texts or pairs in a request.
        n_connections: the largest number of requests in flight.
    """

    url: str
    model: str | None = None
    _: KW_ONLY
    api_key: str | None = field(default=None, repr=False)
    key_variable: str | None = None
    timeout_s: float = 60.0
    n_retries: int = 4
    per_request: int = 64
    n_connections: int = 8

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise InputError(f"The URL is {shown(self.url)}, of type {type(self.url).__name__}.")
        url, _, named = self.url.partition("#")
        parts = check_address(url, example="http://127.0.0.1:8080 or https://host/v1")
        if parts.query:
            raise InputError(
                f"The address of {parts.netloc} has a part after '?', which is not supported.",
                hint="Use an address such as https://host/v1, and put the key in an environment variable.",
            )
        if named and self.model and named != self.model:
            raise InputError(f"The URL names the model {named!r}, but model is {self.model!r}.", hint="Remove one.")
        least = min(self.per_request, self.n_connections, self.n_retries + 1)
        if least < 1 or not 0 < self.timeout_s <= MAX_TIMEOUT_S:
            raise InputError(
                f"per_request and n_connections must be at least 1, n_retries at least 0, and timeout_s above 0 and at "
                f"most {MAX_TIMEOUT_S:,} s; got {self.per_request}, {self.n_connections}, {self.n_retries} and "
                f"{self.timeout_s}."
            )
        object.__setattr__(self, "url", url.rstrip("/").removesuffix("/embeddings"))
        object.__setattr__(self, "model", self.model or named or None)

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}  # no open connections

    @property
    def parts(self) -> SplitResult:
        """The parts of the URL."""
        return urlsplit(self.url)


@dataclass(slots=True)
class Learned:
    """What the answers of a server have shown."""

    width: int | None = None
    has_score: bool = True


class Client(ServerAddress):
    """A model behind a server: an embedder and a scorer like any other. Threads can share one.

    It works with ``twinvec serve`` and with any server that has OpenAI's /v1/embeddings; pairs are scored by /score
    (vLLM) or /rerank (Cohere, Jina). Connections stay open between requests; long lists are split into requests,
    several of them in flight. Without ``model``, the server's default models embed and score.

    >>> Client("https://host/v1#minilm").name
    'minilm at host'
    """

    @cached_property
    def _connections(self) -> Connections:
        return Connections(self.url, timeout_s=self.timeout_s, n_kept=self.n_connections)

    @cached_property
    def _streams(self) -> Streams:
        return Streams(self.n_connections)

    @cached_property
    def _learned(self) -> Learned:
        return Learned()

    @cached_property
    def _numbers(self) -> Iterator[int]:
        return count(1)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connections. The client can still be used."""
        self._connections.close()

    @property
    def name(self) -> str:
        """The model's name and the server's host."""
        return f"{self.model or self.served.name} at {self.parts.netloc}"

    @property
    def address(self) -> str:
        """The URL with the model's name, which opens the same model again."""
        return f"{self.url}#{self.model or self.served.name}"

    @cached_property
    def served(self) -> ServerModel:
        """The model in the server's list; of a server without a list, only the name."""
        models = self._models
        if self.model is None:
            return self._default(models)
        found = next((each for each in models if each.name == self.model), None)
        if found is None and any(each.is_twinvec for each in models):
            raise UnknownNameError(f"model of {self.url}", self.model, [each.name for each in models])
        return found or ServerModel(self.model)

    @cached_property
    def _described(self) -> ServerModel:
        """The model with all that a Twinvec server states of it."""
        if not self.served.is_twinvec:
            return self.served
        url = f"{self.url}/models/{quote(self.served.name)}"
        request = f"The request to {url}"
        return parse_model(self._send(url, None, request, threading.Event()), request=request)

    @cached_property
    def identity(self) -> str:
        """A digest of all that decides the vectors or scores.

        A Twinvec server states it. For other servers, it covers the URL, the model, and the signs of one text's vector
        (or one score), which detects a different model under the same name.
        """
        if self._described.identity is not None:
            return f"served-{self._described.identity}"
        try:
            found = [np.packbits(self.embed([PROBE])[0] > 0).tobytes().hex(), self.width]
        except Refused as error:
            if error.status not in NO_SUCH_ROUTE:
                raise
            found = [f"{self.score([(PROBE, PROBE)])[0]:.3g}"]
        content = json.dumps([self.url, self.served.name, *found])
        return "endpoint-" + hashlib.sha256(content.encode()).hexdigest()

    @property
    def space(self) -> str:
        """A digest of the vector space: vectors of embedders with the same space can be compared."""
        return self._described.space or self.identity

    @property
    def width(self) -> int | None:
        """Size of a vector; None until the server has told it."""
        known = self._described.width if "_described" in self.__dict__ else None
        return known or self._learned.width

    @property
    def similarity(self) -> str:
        """The similarity measure of the model; cosine if the server does not state it."""
        return self._described.similarity

    @property
    def only_scores(self) -> bool:
        """Whether the model scores pairs and does not embed."""
        return self.served.job == "scoring"

    @property
    def settings(self) -> dict[str, object]:
        """The address, for reports."""
        return {"url": self.url, "model": self.model or self.served.name}

    def for_scoring(self) -> Client:
        """This client with the model that scores pairs, so that ``name`` and ``identity`` are those of the scorer."""
        return self if self.model is not None else replace(self, model=self._scorer())

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``. A Twinvec server applies the model's prompt for the role."""
        if isinstance(texts, str):
            raise InputError("Expected a list of texts, got one text.", hint="Put it in a list.")
        listed = check_texts(texts)
        content: dict[str, object] = {"model": self.model or self.served.name, "encoding_format": "base64"}
        if role != "text" and self.served.is_twinvec:
            content["input_type"] = role

        def embed(part: Sequence[str], stop: threading.Event) -> Vectors:
            url, request = self._route("embeddings", f"{len(part)} texts")
            body = self._send(url, {**content, "input": part}, request, stop)
            found = parse_vectors(body, len(part), request=request)
            vectors = checked_vectors(found, part, width=self.width, source=request)
            self._learned.width = int(vectors.shape[1])
            return vectors

        parts = self._in_parts(listed, embed, len)
        return np.concatenate(parts) if parts else np.zeros((0, self.width or 0), dtype=np.float32)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``."""
        model = self.model or self._scorer()

        def score(part: Sequence[Pair], stop: threading.Event) -> NDArray[np.float32]:
            if self._learned.has_score:
                url, request = self._route("score", f"{len(part)} pairs")
                texts = {"text_1": [first for first, _ in part], "text_2": [second for _, second in part]}
                try:
                    body = self._send(url, {"model": model, **texts}, request, stop)
                    return parse_scores(body, len(part), request=request)
                except Refused as error:
                    if error.status not in NO_SUCH_ROUTE or self.served.is_twinvec:
                        raise
            by_query = FunctionScorer(lambda query, texts: self._rerank(model, query, texts, stop), self.url)
            scores = by_query.score(part)
            self._learned.has_score = False
            return scores

        parts = self._in_parts(checked_pairs(pairs), score, lambda pair: len(pair[0]) + len(pair[1]))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)

    def rank(self, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
        """The ``k`` best texts for a query, best first: their rows in the list and their scores."""
        return rank_texts(self, query, texts, k)

    def _rerank(self, model: str, query: str, texts: Sequence[str], stop: threading.Event) -> NDArray[np.float32]:
        url, request = self._route("rerank", f"{len(texts)} texts")
        content = {"model": model, "query": query, "documents": list(texts), "top_n": len(texts)}
        return parse_scores(self._send(url, content, request, stop), len(texts), request=request)

    def _scorer(self) -> str:
        """The server's default model for scores."""
        return next((each.name for each in self._models if each.job == "scoring"), None) or self.served.name

    @cached_property
    def _models(self) -> list[ServerModel]:
        """The models that the server lists; empty if it has no list."""
        url, request = f"{self.url}/models", f"The request to {self.url}/models"
        try:
            body = self._send(url, None, request, threading.Event())
        except Refused as error:
            if error.status in (401, 403):
                raise
            return []
        try:
            return parse_models(body, request=request)
        except InputError:  # a page for people, for example
            return []

    def _default(self, models: Sequence[ServerModel]) -> ServerModel:
        if not models:
            raise InputError(
                f"{self.url} has no list of models at {self.url}/models.",
                hint=f"Check the URL, or name the model: {self.url}#model-name.",
            )
        if len(models) > 1 and not models[0].is_twinvec:
            raise InputError(
                f"{self.url} has {len(models)} models.", hint=f"Name one, as in {self.url}#{models[0].name}."
            )
        return next((each for each in models if each.job != "scoring"), models[0])

    def _route(self, route: str, content: str) -> tuple[str, str]:
        """The URL of a route, and the name of the next request to it."""
        url = f"{self.url}/{route}"
        return url, f"Request {next(self._numbers)} ({content}) to {url}"

    def _send(self, url: str, content: object | None, request: str, stop: threading.Event) -> bytes:
        key = find_key(self.url, self.api_key, self.key_variable)
        retries = Retries(self.n_retries, stop)
        return request_json(self._connections, url, content, key=key, retries=retries, request=request)

    def _in_parts(
        self,
        items: Sequence[Item],
        work: Callable[[Sequence[Item], threading.Event], Result],
        size: Callable[[Item], int],
    ) -> list[Result]:
        """Do ``work`` for parts of a list, several at once; returns the results in order.

        After a failure, the other requests are not repeated.
        """
        spans = list(enumerate(split(items, size, most=self.per_request)))
        found: dict[int, Result] = {}
        stop = threading.Event()

        def run(job: tuple[int, slice]) -> None:
            try:
                found[job[0]] = work(items[job[1]], stop)
            except BaseException:
                stop.set()
                raise

        self._streams.run(iter(spans), run)
        return [found[number] for number, _ in spans]


def split(items: Sequence[Item], size: Callable[[Item], int], *, most: int) -> Iterator[slice]:
    """The spans of requests: at most ``most`` items each, and about as many characters as a request may have.

    >>> list(split(["a", "b", "c"], len, most=2))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    start = n_characters = 0
    for end, item in enumerate(items):
        n_more = size(item)
        if end > start and (end - start == most or n_characters + n_more > MAX_CHARACTERS):
            yield slice(start, end)
            start, n_characters = end, 0
        n_characters += n_more
    if start < len(items):
        yield slice(start, len(items))
