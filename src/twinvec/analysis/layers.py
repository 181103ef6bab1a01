"""How the states of models change from layer to layer over a corpus, in bounded memory."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from twinvec.analysis.words import FUNCTION_WORDS, Extremes, MovingWord, WordGroups, extremes, group_words, words_of
from twinvec.choices import DEFAULT_MODEL
from twinvec.embedder import Embedder, ModelEmbedder, ModelLike, as_embedder
from twinvec.encoder import Encoder, LayerBatch
from twinvec.errors import InputError
from twinvec.progress import Progress
from twinvec.wk import WKSettings, layer_cosines, layer_weights, read_tokens, token_importance

__all__ = [
    "LayerFindings",
    "LayerSettings",
    "LayerSurvey",
    "TextPicture",
    "analyze_layers",
    "check_has_layers",
    "open_model",
    "picture_text",
    "short_names",
    "survey_layers",
]

Numbers = NDArray[np.float64]

TEXTS_PER_BLOCK = 512


@dataclass(frozen=True, eq=False)
class LayerSurvey:
    """How a model's layers change the tokens of a corpus.

    ``cosines``, ``(layers + 1, layers + 1)``, is the mean cosine between two layers over all tokens but special ones,
    embeddings first. ``words``, by increasing variance, has the words that are a single token; their variance is of the
    cosines between adjacent layers from ``layer_start`` on, the paper's measure of importance.
    """

    model: str
    n_texts: int
    n_tokens: int
    layer_start: int
    cosines: Numbers
    words: tuple[MovingWord, ...]

    @property
    def n_layers(self) -> int:
        """The number of layers, without the embeddings."""
        return len(self.cosines) - 1

    def at_distance(self, k: int) -> Numbers:
        """Mean cosine of each layer from ``k`` on with the layer ``k`` before it: ``(layers + 1 - k,)``."""
        return np.asarray(np.diagonal(self.cosines, k))

    def frequent(self, min_count: int) -> list[MovingWord]:
        """The words that occur at least this often, by increasing variance."""
        return [each for each in self.words if each.n_seen >= min_count]


def survey_layers(
    encoders: Mapping[str, Encoder],
    texts: Iterable[str],
    *,
    layer_start: int | None = None,
    function_words: Collection[str] = FUNCTION_WORDS,
) -> list[LayerSurvey]:
    """Survey named models over the same texts, which are read once, without prompts.

    ``layer_start`` is the first layer that counts for the variance of words; the default is SBERT-WK's, a third of the
    layers.
    """
    for encoder in encoders.values():
        check_has_layers(encoder)
    tallies = {name: _Tally(encoder, WKSettings(layer_start=layer_start)) for name, encoder in encoders.items()}
    source, n_texts = iter(texts), 0
    with Progress(None, "reading layers") as bar:
        while block := list(islice(source, TEXTS_PER_BLOCK)):
            n_texts += len(block)
            for tally in tallies.values():
                tally.read(block)
            bar.advance(len(block))
    return [tally.result(name, n_texts, function_words) for name, tally in tallies.items()]


def check_has_layers(encoder: Encoder) -> None:
    """Refuse a static model and a Universal Sentence Encoder."""
    if not encoder.folder.has_layers:
        kind = "static model: it looks up token vectors and" if encoder.folder.is_static else "sentence encoder that"
        raise InputError(
            f"{encoder.folder.path} is a {kind} has no layers.",
            hint="Use a Transformer model.",
        )


class _Tally:
    """Sums over all tokens read so far: one matrix, and two numbers per word."""

    def __init__(self, encoder: Encoder, settings: WKSettings) -> None:
        self.encoder, self.settings = encoder, settings
        self.cosines: Numbers | None = None
        self.n_tokens = 0
        self.layer_start = 0
        self.words: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])  # count, sum of variances
        self.lock = Lock()

    def read(self, texts: Sequence[str]) -> None:
        """Add some texts."""
        words = words_of(self.encoder, texts)
        self.encoder.visit_layers(texts, lambda batch: self._add(batch, words), prompt="")

    def _add(self, batch: LayerBatch, words: Sequence[Sequence[str]]) -> None:
        cosines = layer_cosines(batch.layers)
        n_layers = len(cosines) - 1
        start = self.settings.start(n_layers)
        steps = np.arange(start, n_layers)
        variances = cosines[steps, steps + 1].var(axis=0) if len(steps) > 1 else None
        is_word = self._is_own(batch)
        summed = cosines[:, :, is_word].sum(axis=-1)
        with self.lock:
            self.cosines = summed if self.cosines is None else self.cosines + summed
            self.n_tokens += int(is_word.sum())
            self.layer_start = start
            for owner, row in zip(batch.owners, () if variances is None else variances.tolist(), strict=False):
                for word, variance in zip(words[owner], row, strict=False):  # the row is padded
                    if word:
                        entry = self.words[word]
                        entry[0] += 1
                        entry[1] += variance

    def _is_own(self, batch: LayerBatch) -> NDArray[np.bool_]:
        """Which tokens, ``(batch, tokens)``, belong to the text and are not special tokens."""
        tokenizer = self.encoder.tokenizer
        index = np.arange(batch.tokens.mask.shape[1])
        ends = batch.tokens.mask.sum(axis=1, keepdims=True) - len(tokenizer.suffix)
        return np.asarray((index >= len(tokenizer.prefix)) & (index < ends))

    def result(self, name: str, n_texts: int, function_words: Collection[str]) -> LayerSurvey:
        """The survey, with means instead of sums."""
        if self.cosines is None or not self.n_tokens:
            raise InputError(f"{name} finds no token in the {n_texts:,} texts.", hint="Use texts that are not empty.")
        words = [
            MovingWord(word, int(count), total / count, word in function_words)
            for word, (count, total) in self.words.items()
        ]
        ranked = tuple(sorted(words, key=lambda each: (each.variance, each.word)))
        return LayerSurvey(name, n_texts, self.n_tokens, self.layer_start, self.cosines / self.n_tokens, ranked)


@dataclass(frozen=True, eq=False)
class TextPicture:
    """SBERT-WK's weights of layers, ``(layers, tokens)`` from ``layer_start`` on, and of tokens, ``(tokens,)``.

    The weights of a token sum to 1 over its layers, and ``importance`` sums to 1 over the tokens.
    """

    model: str
    text: str
    tokens: tuple[str, ...]
    layer_start: int
    weights: NDArray[np.float64]
    importance: NDArray[np.float64]

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {
            "model": self.model,
            "text": self.text,
            "tokens": list(self.tokens),
            "layer_start": self.layer_start,
            "weights": self.weights.round(6).tolist(),
            "importance": self.importance.round(6).tolist(),
        }


def picture_text(encoder: Encoder, text: str, *, model: str, settings: WKSettings | None = None) -> TextPicture:
    """The weights of one text, including its special tokens."""
    settings = settings or WKSettings()
    layers = encoder.encode_layers(text, prompt="")[0]
    if not layers.size:
        raise InputError(f"{model} finds no token in the text {text!r:.80}.", hint="Use a text that is not empty.")
    tokenizer = encoder.tokenizer
    ids = tokenizer.cut(tokenizer.ids([text])[0], layers.shape[1] - tokenizer.n_special)
    tokens = [normalize("NFC", token) for token in tokenizer.tokens(tokenizer.add_special_tokens(ids))]
    start = settings.start(len(layers) - 1)
    cosines = layer_cosines(layers[start:])
    mask = read_tokens(np.ones((1, len(tokens)), dtype=np.int64), settings)
    importance = token_importance(cosines[:, :, None], mask)[0]
    return TextPicture(model, text, tuple(tokens), start, layer_weights(cosines, settings).combined, importance)


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """Settings of the analysis and its report.

    Args:
        layer_start: the first layer that counts for words and pictures; by default SBERT-WK's, a third of the layers.
        max_distance: maximum distance between two layers in the line plot.
        n_words: number of words to list in each of three groups: lowest, middle and highest variance.
        min_count: minimum number of occurrences of a word in the ranking.
        function_words: grammatical words, in lower case; by default an English list.
    """

    layer_start: int | None = None
    max_distance: int = 4
    n_words: int = 10
    min_count: int = 5
    function_words: Collection[str] = FUNCTION_WORDS


DEFAULT_SETTINGS = LayerSettings()


@dataclass(frozen=True, eq=False)
class LayerFindings:
    """Surveys of several models over the same texts, from ``source``, and pictures of some texts."""

    source: str
    surveys: Sequence[LayerSurvey]
    pictures: Sequence[TextPicture] = ()
    settings: LayerSettings = DEFAULT_SETTINGS

    @property
    def distances(self) -> list[int]:
        """Distances between layers in the line plot: 1 to the maximum."""
        return list(range(1, min(self.settings.max_distance, max(each.n_layers for each in self.surveys)) + 1))

    def extremes(self, survey: LayerSurvey) -> Extremes:
        """The words of a model with the lowest, middle and highest variance."""
        return extremes(survey.frequent(self.settings.min_count), self.settings.n_words)

    def groups(self, survey: LayerSurvey) -> WordGroups | None:
        """A model's function words compared with its content words."""
        return group_words(survey.frequent(self.settings.min_count))

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {
            "source": self.source,
            "min_count": self.settings.min_count,
            "models": [self._survey(each) for each in self.surveys],
            "pictures": [each.as_dict() for each in self.pictures],
        }

    def _survey(self, survey: LayerSurvey) -> dict[str, Any]:
        groups = self.groups(survey)
        distances = range(1, survey.n_layers + 1)
        return {
            "model": survey.model,
            "n_layers": survey.n_layers,
            "n_texts": survey.n_texts,
            "n_tokens": survey.n_tokens,
            "layer_start": survey.layer_start,
            "cosines": survey.cosines.round(6).tolist(),
            "mean_at_distance": {str(k): round(float(survey.at_distance(k).mean()), 6) for k in distances},
            "function_words": groups and groups.function._asdict(),
            "content_words": groups and groups.content._asdict(),
            "content_moves_more": groups and round(groups.content_moves_more, 6),
            "words": [each._asdict() for each in survey.frequent(self.settings.min_count)],
        }


def analyze_layers(
    texts: Iterable[str],
    models: ModelLike | Embedder | Sequence[ModelLike | Embedder] = DEFAULT_MODEL,
    *,
    settings: LayerSettings = DEFAULT_SETTINGS,
    pictures: int | Sequence[str] = 0,
    source: str = "texts",
) -> LayerFindings:
    """Analyze how the states of texts change from layer to layer; the texts are read once, in blocks.

    Args:
        models: a name, a folder, an encoder or a :class:`~twinvec.embedder.ModelEmbedder`, or several of them.
        settings: settings of the analysis and its report.
        pictures: texts whose SBERT-WK weights to draw, or a number of texts from the start.
        source: the name of the texts in reports.

    >>> found = analyze_layers(["A cat sits on the mat.", "The dog sleeps."])
    >>> found.surveys[0].model, found.surveys[0].cosines.shape
    ('twinvec-mini', (5, 5))
    """
    remaining = iter(texts)
    first = list(islice(remaining, pictures)) if isinstance(pictures, int) else []
    listed = [models] if isinstance(models, (str, os.PathLike)) or not isinstance(models, Sequence) else models
    opened = [open_model(model) for model in listed]
    names = short_names([model.model for model in opened])
    encoders = {name: model.encoder for name, model in zip(names, opened, strict=True)}
    all_texts, start = chain(first, remaining), settings.layer_start
    surveys = survey_layers(encoders, all_texts, layer_start=start, function_words=settings.function_words)
    drawn = [
        picture_text(encoder, text, model=name, settings=WKSettings(layer_start=start))
        for text in (first if isinstance(pictures, int) else pictures)
        for name, encoder in encoders.items()
    ]
    return LayerFindings(source, surveys, drawn, settings)


def open_model(model: ModelLike | Embedder) -> ModelEmbedder:
    """The embedder of a model with layers; refuses embedders that return only vectors."""
    embedder = as_embedder(model)
    if not isinstance(embedder, ModelEmbedder):
        raise InputError(
            f"{embedder.name} returns only vectors, not the states of layers.",
            hint="Use the name of a model, its folder, or an encoder.",
        )
    return embedder


def short_names(names: Sequence[str]) -> list[str]:
    """Names of models for reports: the last part of each path, or the full names if two are equal.

    >>> short_names(["/models/minilm", "org/mpnet/"]), short_names(["a/m", "b/m"])
    (['minilm', 'mpnet'], ['a/m', 'b/m'])
    """
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)
