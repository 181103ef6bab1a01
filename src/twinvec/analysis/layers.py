"""How a model's states change from layer to layer over a corpus, in bounded memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinvec.analysis.words import FUNCTION_WORDS, Extremes, MovingWord, WordGroups, extremes, group_words, words_of
from twinvec.encoder import Encoder, LayerBatch
from twinvec.errors import InputError
from twinvec.progress import Progress
from twinvec.wk import WKSettings, layer_cosines, layer_weights, read_tokens, token_importance

__all__ = [
    "LayerFindings",
    "LayerSurvey",
    "TextPicture",
    "check_has_layers",
    "picture_text",
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
        place = np.arange(batch.tokens.mask.shape[1])
        ends = batch.tokens.mask.sum(axis=1, keepdims=True) - len(tokenizer.suffix)
        return np.asarray((place >= len(tokenizer.prefix)) & (place < ends))

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


@dataclass(frozen=True, eq=False)
class LayerFindings:
    """Surveys of some models over the same texts, and pictures of some of these.

    Args:
        source: the file of the texts.
        max_distance: how far apart two layers are at most that are shown as lines.
        n_words: how many words are shown of those that move least, in the middle, and most.
        min_count: how often a word must have been seen to be ranked.
    """

    source: str
    surveys: Sequence[LayerSurvey]
    pictures: Sequence[TextPicture] = ()
    max_distance: int = 4
    n_words: int = 10
    min_count: int = 5

    @property
    def distances(self) -> list[int]:
        """1 to the furthest that any model has."""
        return list(range(1, min(self.max_distance, max(each.n_layers for each in self.surveys)) + 1))

    def extremes(self, survey: LayerSurvey) -> Extremes:
        """The words of a model to show."""
        return extremes(survey.frequent(self.min_count), self.n_words)

    def groups(self, survey: LayerSurvey) -> WordGroups | None:
        """A model's function words against its content words."""
        return group_words(survey.frequent(self.min_count))

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {
            "source": self.source,
            "min_count": self.min_count,
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
            "words": [each._asdict() for each in survey.frequent(self.min_count)],
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
