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
    """What a model's layers do to a corpus.

    ``cosines``, ``(layers + 1, layers + 1)``, is the mean over all tokens of the cosine between two layers, the
    embeddings first; special tokens do not count. ``words``, by rising variance, are those that are one token; their
    variance is that of the cosines between neighbour layers from ``layer_start`` on, the paper's measure of importance.
    """

    model: str
    n_texts: int
    n_tokens: int
    layer_start: int
    cosines: Numbers
    words: tuple[MovingWord, ...]

    @property
    def n_layers(self) -> int:
        """Layers of the model, the embeddings not counted."""
        return len(self.cosines) - 1

    def at_distance(self, k: int) -> Numbers:
        """Mean cosine of each layer from ``k`` on to the one ``k`` before it: ``(layers + 1 - k,)``."""
        return np.asarray(np.diagonal(self.cosines, k))

    def frequent(self, min_count: int) -> list[MovingWord]:
        """The words that were seen this often, by rising variance."""
        return [each for each in self.words if each.n_seen >= min_count]


def survey_layers(
    encoders: Mapping[str, Encoder],
    texts: Iterable[str],
    *,
    layer_start: int | None = None,
    function_words: Collection[str] = FUNCTION_WORDS,
) -> list[LayerSurvey]:
    """Survey some models, by name, over the same texts, which are read once; prompts are not put before them.

    ``layer_start`` is the first layer whose changes count for the variance of words; by default SBERT-WK's, a third of
    the layers.
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
    """Refuse a static model."""
    if encoder.folder.is_static:
        raise InputError(
            f"{encoder.folder.path} is a static model: it looks token vectors up, and has no layers.",
            hint="Use a model that has a Transformer.",
        )


class _Tally:
    """Sums over all tokens that were read so far: one matrix, and two numbers for each word of the vocabulary."""

    def __init__(self, encoder: Encoder, settings: WKSettings) -> None:
        self.encoder, self.settings = encoder, settings
        self.cosines: Numbers | None = None
        self.n_tokens = 0
        self.layer_start = 0
        self.words: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])  # count, sum of variances
        self.lock = Lock()

    def read(self, texts: Sequence[str]) -> None:
        """Take in some texts."""
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
        """Which tokens, ``(batch, tokens)``, are the text's own, and not special ones around it."""
        tokenizer = self.encoder.tokenizer
        index = np.arange(batch.tokens.mask.shape[1])
        ends = batch.tokens.mask.sum(axis=1, keepdims=True) - len(tokenizer.suffix)
        return np.asarray((index >= len(tokenizer.prefix)) & (index < ends))

    def result(self, name: str, n_texts: int, function_words: Collection[str]) -> LayerSurvey:
        """All of it as means."""
        if self.cosines is None or not self.n_tokens:
            raise InputError(f"{name} finds no token in the {n_texts:,} texts.", hint="Give texts that are not empty.")
        words = [
            MovingWord(word, int(count), total / count, word in function_words)
            for word, (count, total) in self.words.items()
        ]
        ranked = tuple(sorted(words, key=lambda each: (each.variance, each.word)))
        return LayerSurvey(name, n_texts, self.n_tokens, self.layer_start, self.cosines / self.n_tokens, ranked)


@dataclass(frozen=True, eq=False)
class TextPicture:
    """The weights of a text's layers, ``(layers, tokens)`` from ``layer_start`` on, and of its tokens, ``(tokens,)``.

    Over the layers of a token the weights sum to 1, and so does ``importance`` over the tokens.
    """

    model: str
    text: str
    tokens: tuple[str, ...]
    layer_start: int
    weights: NDArray[np.float64]
    importance: NDArray[np.float64]


def picture_text(encoder: Encoder, text: str, *, model: str, settings: WKSettings | None = None) -> TextPicture:
    """The picture of one text; special tokens are part of it."""
    settings = settings or WKSettings()
    layers = encoder.encode_layers(text, prompt="")[0]
    if not layers.size:
        raise InputError(f"{model} finds no token in the text {text!r:.80}.", hint="Give a text that is not empty.")
    ids = encoder.tokenizer.ids([text])[0]
    room = layers.shape[1] - encoder.tokenizer.n_special
    tokens = encoder.tokenizer.tokens(encoder.tokenizer.add_special_tokens(encoder.tokenizer.cut(ids, room)))
    start = settings.start(len(layers) - 1)
    cosines = layer_cosines(layers[start:])
    mask = read_tokens(np.ones((1, len(tokens)), dtype=np.int64), settings)
    importance = token_importance(cosines[:, :, None], mask)[0]
    return TextPicture(model, text, tuple(tokens), start, layer_weights(cosines, settings).combined, importance)


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """What is analyzed, and how much of it is shown.

    Args:
        layer_start: the first layer whose changes count for words and pictures; by default SBERT-WK's, a third of the
            layers.
        max_distance: how far apart two layers are at most that are shown as lines.
        n_words: how many words are shown of those that move least, in the middle, and most.
        min_count: how often a word must have been seen to be ranked.
        function_words: words that carry grammar, in lower case; by default a list of English ones.
    """

    layer_start: int | None = None
    max_distance: int = 4
    n_words: int = 10
    min_count: int = 5
    function_words: Collection[str] = FUNCTION_WORDS


DEFAULT_SETTINGS = LayerSettings()


@dataclass(frozen=True, eq=False)
class LayerFindings:
    """Surveys of some models over the same texts, whose ``source`` is named, and pictures of some of these."""

    source: str
    surveys: Sequence[LayerSurvey]
    pictures: Sequence[TextPicture] = ()
    settings: LayerSettings = DEFAULT_SETTINGS

    @property
    def distances(self) -> list[int]:
        """1 to the furthest that any model has."""
        return list(range(1, min(self.settings.max_distance, max(each.n_layers for each in self.surveys)) + 1))

    def extremes(self, survey: LayerSurvey) -> Extremes:
        """The words of a model to show."""
        return extremes(survey.frequent(self.settings.min_count), self.settings.n_words)

    def groups(self, survey: LayerSurvey) -> WordGroups | None:
        """A model's function words against its content words."""
        return group_words(survey.frequent(self.settings.min_count))

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {
            "source": self.source,
            "min_count": self.settings.min_count,
            "models": [self._survey(each) for each in self.surveys],
            "pictures": [_picture(each) for each in self.pictures],
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


def _picture(picture: TextPicture) -> dict[str, Any]:
    return {
        "model": picture.model,
        "text": picture.text,
        "tokens": list(picture.tokens),
        "layer_start": picture.layer_start,
        "weights": picture.weights.round(6).tolist(),
        "importance": picture.importance.round(6).tolist(),
    }


def analyze_layers(
    texts: Iterable[str],
    models: ModelLike | Embedder | Sequence[ModelLike | Embedder] = DEFAULT_MODEL,
    *,
    settings: LayerSettings = DEFAULT_SETTINGS,
    pictures: int | Sequence[str] = 0,
    source: str = "texts",
) -> LayerFindings:
    """Show how the states of texts change from layer to layer of some models; the texts are read once, in blocks.

    Args:
        models: a name, a folder, an encoder or a :class:`~twinvec.embedder.ModelEmbedder`, or several of them.
        settings: what is analyzed, and how much of it is shown.
        pictures: texts to draw as SBERT-WK weighs their tokens and layers, or how many of the first.
        source: what the texts are called in reports.

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
    surveys = survey_layers(
        encoders,
        chain(first, remaining),
        layer_start=settings.layer_start,
        function_words=settings.function_words,
    )
    drawn = [
        picture_text(encoder, text, model=name, settings=WKSettings(layer_start=settings.layer_start))
        for text in (first if isinstance(pictures, int) else pictures)
        for name, encoder in encoders.items()
    ]
    return LayerFindings(source, surveys, drawn, settings)


def open_model(model: ModelLike | Embedder) -> ModelEmbedder:
    """A model whose layers can be read; refuses what gives vectors only."""
    embedder = as_embedder(model)
    if not isinstance(embedder, ModelEmbedder):
        raise InputError(
            f"{embedder.name} gives vectors only, and not the layers behind them.",
            hint="Give the name of a model, its folder, or an encoder.",
        )
    return embedder


def short_names(names: Sequence[str]) -> list[str]:
    """What models are called in reports: the last part of the path, unless two share it.

    >>> short_names(["/models/minilm", "org/mpnet/"]), short_names(["a/m", "b/m"])
    (['minilm', 'mpnet'], ['a/m', 'b/m'])
    """
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)
