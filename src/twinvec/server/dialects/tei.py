"""The dialect of Hugging Face's Text Embeddings Inference, which ``huggingface_hub.InferenceClient`` also speaks."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec
import numpy as np

from twinvec.embedder import Embedder, ModelEmbedder
from twinvec.errors import InputError
from twinvec.server.problems import Dialect, Problem
from twinvec.server.wire import Call, Endpoint
from twinvec.vectors import similarity, unit_rows

__all__ = ["DIALECT", "ENDPOINTS", "RankedText", "ranked_texts"]

KINDS = {"overloaded": "Overloaded", "rate_limit": "Overloaded", "internal": "Backend", "not_ready": "Unhealthy"}


def error_body(problem: Problem, _: int) -> object:
    """An error as the clients of TEI expect it."""
    return {"error": problem.message, "error_type": KINDS.get(problem.kind, "Validation")}


DIALECT = Dialect("tei", error_body, {"invalid": 422})


class EmbedRequest(msgspec.Struct):
    """``inputs`` is one text or several."""

    inputs: str | list[str]
    model: str | None = None
    truncate: bool | None = False
    normalize: bool | None = True
    prompt_name: str | None = None
    dimensions: int | None = None


class SimilarityInputs(msgspec.Struct):
    """A text, and the texts to compare it with."""

    source_sentence: str
    sentences: list[str]


class SimilarityRequest(msgspec.Struct):
    """Compare a text with several others."""

    inputs: SimilarityInputs
    model: str | None = None


class AnyRequest(msgspec.Struct):
    """A request to ``/``: what it asks for depends on its ``inputs``."""

    inputs: str | list[str] | SimilarityInputs
    model: str | None = None
    truncate: bool | None = False
    normalize: bool | None = True
    prompt_name: str | None = None
    dimensions: int | None = None


class PredictRequest(msgspec.Struct):
    """``inputs`` is a pair of texts, or several pairs."""

    inputs: str | list[str | list[str]]
    model: str | None = None
    raw_scores: bool = False


class TokenizeRequest(msgspec.Struct):
    """``inputs`` is one text or several."""

    inputs: str | list[str]
    model: str | None = None
    add_special_tokens: bool = True


class Token(msgspec.Struct):
    """A token, and the characters of the text that it covers."""

    id: int
    text: str
    special: bool
    start: int | None = None
    stop: int | None = None


class Prediction(msgspec.Struct):
    """The score of a label."""

    label: str
    score: float


class RankedText(msgspec.Struct, omit_defaults=True):
    """A text of a ranking."""

    index: int
    score: float
    text: str | None = None


class Info(msgspec.Struct):
    """What the server runs."""

    model_id: str
    model_dtype: str
    model_type: dict[str, Any]
    max_input_length: int | None
    max_client_batch_size: int
    max_concurrent_requests: int
    version: str
    model_sha: str | None = None


async def embed(request: EmbedRequest | AnyRequest, call: Call) -> list[list[float]]:
    """Embed one text or several."""
    name = call.model(request.model, "embedding")
    assert not isinstance(request.inputs, SimilarityInputs)
    found = await call.models.embed(
        name,
        call.texts(request.inputs, "inputs"),
        prompt_name=request.prompt_name,
        width=request.dimensions,
        truncate=bool(request.truncate),
    )
    vectors = found.vectors if request.normalize is False else unit_rows(found.vectors)
    rows: list[list[float]] = vectors.tolist()
    return rows


async def embed_all(request: EmbedRequest, call: Call) -> list[list[list[float]]]:
    """The vectors of all tokens of each text."""
    name = call.model(request.model, "embedding")
    texts = call.texts(request.inputs, "inputs")
    embedder = await call.models.checked_embedder(name, texts)
    return await call.models.run(token_vectors, embedder, texts, request.prompt_name)


async def similarities(request: SimilarityRequest | AnyRequest, call: Call) -> list[float]:
    """Compare a text with several others."""
    name = call.model(request.model, "embedding")
    assert isinstance(request.inputs, SimilarityInputs)
    texts = call.texts([request.inputs.source_sentence, *request.inputs.sentences], "inputs")
    if len(texts) == 1:
        raise Problem("invalid", "'sentences' is empty. Send at least one text.", "inputs")
    vectors = (await call.models.embed(name, texts)).vectors
    measure = (await call.models.embedder(name)).similarity
    scores: list[float] = similarity(vectors[:1], vectors[1:], measure)[0].tolist()
    return scores


async def embed_or_compare(request: AnyRequest, call: Call) -> list[list[float]] | list[float]:
    """Embed texts, or compare a text with others if ``inputs`` has a ``source_sentence``."""
    job = similarities if isinstance(request.inputs, SimilarityInputs) else embed
    return await job(request, call)


async def predict(request: PredictRequest, call: Call) -> list[Prediction] | list[list[Prediction]]:
    """Score one pair of texts or several, label by label."""
    name = call.model(request.model, "scoring")
    given = request.inputs
    is_one = isinstance(given, list) and len(given) == 2 and all(isinstance(text, str) for text in given)
    pairs = [given] if is_one else given
    if isinstance(pairs, str) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise Problem("invalid", "The model reads pairs: 'inputs' must be two texts, or a list of two texts each.")
    checked = [(str(pair[0]), str(pair[1])) for pair in call.texts(pairs, "inputs")]  # type: ignore[arg-type]
    scores = await call.models.score(name, checked, raw=request.raw_scores)
    labels = getattr(await call.models.scorer(name), "labels", ("score",))
    rows = [predictions(labels, row) for row in scores.reshape(len(pairs), -1)]
    return rows[0] if is_one else rows


async def tokenize(request: TokenizeRequest, call: Call) -> list[list[Token]]:
    """The tokens of one text or several."""
    name = call.model(request.model, "embedding")
    texts = call.texts(request.inputs, "inputs")
    embedder = await call.models.checked_embedder(name, texts)
    return await call.models.run(tokens, embedder, texts, request.add_special_tokens)


async def info(_: None, call: Call) -> Info:
    """Describe the default model and the limits."""
    settings, name = call.service.settings, call.model(None, "embedding")
    embedder = await call.models.embedder(name)
    encoder = embedder.encoder if isinstance(embedder, ModelEmbedder) else None
    return Info(
        model_id=name,
        model_dtype="float32" if encoder is None else encoder.engine.precision,
        model_type={"embedding": {"similarity": embedder.similarity, "width": embedder.width}},
        max_input_length=None if encoder is None else encoder.max_tokens,
        max_client_batch_size=settings.limits.texts,
        max_concurrent_requests=settings.limits.queued_texts,
        version=version("twinvec"),
    )


def ranked_texts(order: list[int], scores: list[float], texts: list[str] | None) -> list[RankedText]:
    """A ranking, best first; with the texts if they are given."""
    shown = [None] * len(order) if texts is None else [texts[index] for index in order]
    return [RankedText(index, scores[index], text) for index, text in zip(order, shown, strict=True)]


def predictions(labels: tuple[str, ...], scores: Any) -> list[Prediction]:  # noqa: ANN401 - a row of numbers
    """The labels of a pair, best first; one score without labels is named so."""
    names = labels if len(labels) == len(scores) else ("score",) * len(scores)
    return [Prediction(names[index], float(scores[index])) for index in np.argsort(-scores, kind="stable")]


def token_vectors(embedder: Embedder, texts: list[str], prompt_name: str | None) -> list[list[list[float]]]:
    """The last layer's states of each text."""
    if not isinstance(embedder, ModelEmbedder):
        raise InputError("This model has no vectors of tokens.", hint="Use /embed.")
    encoder = embedder.encoder
    if prompt_name is not None and prompt_name not in encoder.prompts:
        raise InputError(
            f"This model has no prompt {prompt_name[:100]!r}.", hint=f"It has: {', '.join(encoder.prompts)}."
        )
    prompt = None if prompt_name is None else encoder.prompts[prompt_name]
    return [states.tolist() for states in encoder.encode_tokens(texts, prompt=prompt)]


def tokens(embedder: Embedder, texts: list[str], special: bool) -> list[list[Token]]:
    """The tokens of each text."""
    if not isinstance(embedder, ModelEmbedder):
        raise InputError("This model has no tokenizer.")
    fast = embedder.encoder.tokenizer.fast
    rows = []
    for encoding in fast.encode_batch(texts, add_special_tokens=special):
        parts = zip(encoding.ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets, strict=True)
        rows.append(
            [Token(id_, text, True) if mark else Token(id_, text, False, *span) for id_, text, mark, span in parts]
        )
    return rows


ENDPOINTS = (
    Endpoint("POST", ("/embed",), embed, DIALECT, EmbedRequest, list[list[float]]),
    Endpoint("POST", ("/embed_all",), embed_all, DIALECT, EmbedRequest, list[list[list[float]]]),
    Endpoint("POST", ("/similarity",), similarities, DIALECT, SimilarityRequest, list[float]),
    Endpoint("POST", ("/",), embed_or_compare, DIALECT, AnyRequest, list[Any]),
    Endpoint("POST", ("/predict",), predict, DIALECT, PredictRequest, list[Any]),
    Endpoint("POST", ("/tokenize",), tokenize, DIALECT, TokenizeRequest, list[list[Token]]),
    Endpoint("GET", ("/info",), info, DIALECT, None, Info),
)
