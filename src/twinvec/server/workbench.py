"""What the page asks for, under ``/twinvec/``: similarity, pairs, clusters, search, explanations and layers.

Every handler calls the library off the event loop and renders what it returns. Rows count from 0, in the order of the
request's texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from twinvec.analysis.layers import check_has_layers, open_model, picture_text
from twinvec.choices import KOREAN_MODEL, SHIPPED
from twinvec.cluster.agglomerative import AgglomerativeSettings
from twinvec.cluster.communities import CommunitySettings
from twinvec.cluster.kmeans import KMeansSettings
from twinvec.cluster.texts import ClusterSettings, cluster_texts
from twinvec.collection import Collection
from twinvec.embedder import Embedder, ModelEmbedder, explain
from twinvec.errors import InputError, UnknownNameError
from twinvec.explanation import WordShare
from twinvec.search.texts import explain_hits, find_pairs, search_texts
from twinvec.server.problems import Dialect, Problem
from twinvec.server.wire import Call, Endpoint, Handler
from twinvec.types import Array
from twinvec.vectors import similarity

__all__ = ["DIALECT", "ENDPOINTS"]

ENGLISH = frozenset(SHIPPED) - {KOREAN_MODEL}  # models of the package that read no other language

MOST_IN_MATRIX, MOST_TEXTS = 500, 5000
MOST_CHARACTERS = 20_000  # of a text that is explained

Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Cosine = Annotated[float, msgspec.Meta(ge=-1, le=1)]


def error_body(problem: Problem, status: int) -> object:
    """An error as the page and scripts read it."""
    return {"error": {"message": problem.message, "code": problem.kind, "param": problem.param}}


DIALECT = Dialect("twinvec", error_body)


class SimilarityRequest(msgspec.Struct):
    """At most 500 texts."""

    texts: list[str]
    model: str | None = None


class SimilarityResponse(msgspec.Struct):
    """The scores of all texts with each other, by the model's own measure."""

    model: str
    measure: str
    scores: list[list[float]]


async def similarities(request: SimilarityRequest, call: Call) -> SimilarityResponse:
    """Compare all texts with each other."""
    name = call.model(request.model, "embedding")
    found = await call.models.embed(name, bounded(request.texts, MOST_IN_MATRIX))
    measure = (await call.models.embedder(name)).similarity
    scores = await call.models.run(similarity, found.vectors, found.vectors, measure)
    return SimilarityResponse(name, measure, rounded(scores))


class PairsRequest(msgspec.Struct):
    """At most 5,000 texts; the ``k`` most similar pairs with a cosine of at least ``threshold``."""

    texts: list[str]
    k: Count = 20
    threshold: Cosine | None = None
    model: str | None = None


class TextPair(msgspec.Struct):
    """The rows of two texts and their cosine."""

    left: int
    right: int
    score: float


class PairsResponse(msgspec.Struct):
    """Pairs, best first."""

    model: str
    pairs: list[TextPair]


async def pairs(request: PairsRequest, call: Call) -> PairsResponse:
    """Find the most similar pairs of texts."""
    texts = bounded(request.texts)
    name, embedder = await opened(call, request.model, texts)
    found = await call.models.run(find_pairs, texts, request.k, model=embedder, threshold=request.threshold)
    rows = zip(found.left.tolist(), found.right.tolist(), rounded(found.scores), strict=True)
    return PairsResponse(name, [TextPair(*row) for row in rows])


class ClustersRequest(msgspec.Struct):
    """At most 5,000 texts. ``n_clusters`` is for k-means; ``threshold`` and ``min_size`` are for the others."""

    texts: list[str]
    method: Literal["kmeans", "agglomerative", "communities"] = "kmeans"
    n_clusters: Annotated[int, msgspec.Meta(ge=1, le=200)] = 8
    threshold: Cosine = 0.6
    min_size: Count = 2
    n_words: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    model: str | None = None

    def settings(self) -> ClusterSettings:
        """The settings of the chosen method."""
        if self.method == "kmeans":
            return KMeansSettings(min(self.n_clusters, len(self.texts)))
        if self.method == "agglomerative":
            return AgglomerativeSettings(self.threshold)
        return CommunitySettings(self.threshold, self.min_size)


class ClustersResponse(msgspec.Struct):
    """The cluster of each text (-1: none), its point on a map, and each cluster with key words and central texts."""

    model: str
    method: str
    labels: list[int]
    points: list[tuple[float, float]]
    clusters: list[dict[str, Any]]


async def clusters(request: ClustersRequest, call: Call) -> ClustersResponse:
    """Group texts by meaning, and draw a map."""
    texts = bounded(request.texts)
    name, embedder = await opened(call, request.model, texts)
    found = await call.models.run(
        cluster_texts, texts, request.settings(), model=embedder, n_words=request.n_words, projection="pca"
    )
    points = [] if found.map is None else rounded(found.map.places)
    groups = [asdict(each) for each in found.clusters.clusters]
    return ClustersResponse(name, found.clusters.method, found.labels.tolist(), points, groups)


class SearchRequest(msgspec.Struct):
    """At most 5,000 texts, or the name of a collection."""

    query: str
    texts: list[str] | None = None
    collection: str | None = None
    k: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    model: str | None = None


class SearchResponse(msgspec.Struct, omit_defaults=True):
    """Hits, best first. ``words`` of a hit are (start, end, share): parts of its text and their share of the score.

    If the words cannot be told, ``note`` says why.
    """

    model: str
    hits: list[dict[str, Any]]
    note: str | None = None


async def search(request: SearchRequest, call: Call) -> SearchResponse:
    """Search texts or a collection by meaning."""
    if (request.texts is None) == (request.collection is None):
        raise Problem("invalid", "A search needs either 'texts' or 'collection'.", "texts")
    texts = bounded([request.query, *(request.texts or [])], MOST_TEXTS + 1)
    within = None if request.collection is None else named(call.service.collections, request.collection)
    name, embedder = await opened(call, request.model, texts)
    hits = await call.models.run(found_hits, request, embedder, texts[1:] if within is None else within)
    try:
        words = await call.models.run(hit_words, request.query, hits, embedder, within)
    except InputError as error:  # a model whose vectors are not sums over tokens finds texts all the same
        return SearchResponse(name, hits, without_paths(error, name, embedder))
    return SearchResponse(name, [{**hit, "words": shares} for hit, shares in zip(hits, words, strict=True)])


def found_hits(request: SearchRequest, embedder: Embedder, within: list[str] | Collection) -> list[dict[str, Any]]:
    """The hits of a search as JSON."""
    if isinstance(within, Collection):
        return [asdict(hit) for hit in within.search(request.query, request.k)]
    return [hit._asdict() for hit in search_texts(request.query, within, request.k, model=embedder)]


def hit_words(
    query: str, hits: list[dict[str, Any]], embedder: Embedder, within: Collection | None
) -> list[tuple[WordShare, ...]]:
    """The words of each hit; a collection's model is not ours to ask, so the served one must be the same."""
    is_same = within is None or (isinstance(embedder, ModelEmbedder) and embedder.space == within.model.digest)
    if within is not None and not is_same:
        raise InputError(f"The collection was made with {within.model.name}, so {embedder.name} explains no words.")
    return explain_hits(query, [hit["text"] for hit in hits], model=embedder)


class ExplainRequest(msgspec.Struct):
    """Two texts."""

    left: str
    right: str
    model: str | None = None


async def explained(request: ExplainRequest, call: Call) -> dict[str, Any]:
    """Explain the cosine of two texts token by token."""
    name, embedder = await opened(call, request.model, [short(request.left), short(request.right)])
    try:
        pair = await call.models.run(explain, request.left, request.right, model=embedder)
    except InputError as error:
        raise Problem("invalid", without_paths(error, name, embedder)) from error
    return {"model": name, **pair.as_dict()}


class LayersRequest(msgspec.Struct):
    """One text."""

    text: str
    model: str | None = None


async def layers(request: LayersRequest, call: Call) -> dict[str, Any]:
    """Weigh the tokens of a text, and the layers within each token, by SBERT-WK."""
    name, embedder = await opened(call, request.model, [short(request.text)])
    try:
        encoder = open_model(embedder).encoder
        check_has_layers(encoder)
        picture = await call.models.run(picture_text, encoder, request.text, model=name)
    except InputError as error:
        raise Problem("invalid", without_paths(error, name, embedder)) from error
    return picture.as_dict()


async def about(_: None, call: Call) -> dict[str, Any]:
    """The models, collections and limits that the page offers."""
    visible, embedders = call.visible_models(), call.models.names("embedding")
    specs = [spec for spec in call.service.settings.models if spec.name in visible and spec.name in embedders]
    return {
        "models": [{"name": spec.name, "is_english": spec.source in ENGLISH} for spec in specs],
        "model": specs[0].name if specs else "",
        "collections": list(call.service.collections),
        "limits": {"similarity": MOST_IN_MATRIX, "texts": MOST_TEXTS, "characters": MOST_CHARACTERS},
    }


async def collections(_: None, call: Call) -> dict[str, Any]:
    """The name, size and model of each collection."""
    return await call.models.run(described, call.service.collections)


def described(opened: Mapping[str, Collection]) -> dict[str, Any]:
    """Collections as JSON."""
    rows = [{"name": name, "n_texts": len(each), "model": each.model.name} for name, each in opened.items()]
    return {"collections": rows}


def bounded(texts: list[str], most: int = MOST_TEXTS) -> list[str]:
    """The texts; raises a Problem if there are none, or too many."""
    if not texts:
        raise Problem("invalid", "'texts' is empty. Send at least one text.", "texts")
    if len(texts) > most:
        raise Problem("too_large", f"This takes at most {most:,} texts, got {len(texts):,}.", "texts")
    return texts


def short(text: str) -> str:
    """A text to explain; raises a Problem if it is too long."""
    if len(text) > MOST_CHARACTERS:
        raise Problem("too_large", f"This takes a text of at most {MOST_CHARACTERS:,} characters, got {len(text):,}.")
    return text


async def opened(call: Call, model: str | None, texts: list[str]) -> tuple[str, Embedder]:
    """The name of the asked or default embedding model, and the model; raises a Problem for too many tokens."""
    name = call.model(model, "embedding")
    return name, await call.models.checked_embedder(name, texts)


def without_paths(error: InputError, name: str, embedder: Embedder) -> str:
    """The message of an error about a model, with its served name instead of the place of its files."""
    places = [embedder.name, *([str(embedder.folder)] if isinstance(embedder, ModelEmbedder) else [])]
    message = error.problem
    for place in sorted(places, key=len, reverse=True):
        message = message.replace(place, name)
    return message


def named(known: Mapping[str, Collection], name: str) -> Collection:
    """A collection by its name."""
    if name not in known:
        raise UnknownNameError("collection", name, known)
    return known[name]


def rounded(numbers: Array) -> list[Any]:
    """Numbers for JSON; six digits keep the answer of a matrix small."""
    listed: list[Any] = numbers.astype(np.float64).round(6).tolist()
    return listed


def _post(path: str, handler: Handler, request: type, response: Any = None) -> Endpoint:  # noqa: ANN401 - a type
    return Endpoint("POST", (f"/twinvec/{path}",), handler, DIALECT, request, response)


ENDPOINTS = (
    _post("similarity", similarities, SimilarityRequest, SimilarityResponse),
    _post("pairs", pairs, PairsRequest, PairsResponse),
    _post("clusters", clusters, ClustersRequest, ClustersResponse),
    _post("search", search, SearchRequest, SearchResponse),
    _post("explain", explained, ExplainRequest, dict[str, Any]),
    _post("layers", layers, LayersRequest, dict[str, Any]),
    Endpoint("GET", ("/twinvec/about",), about, DIALECT, response=dict[str, Any]),
    Endpoint("GET", ("/twinvec/collections",), collections, DIALECT, response=dict[str, Any]),
)
