"""How a model's states change from layer to layer over a corpus, read once, in bounded memory.

Wang and Kuo (2020, arXiv 2002.06652), section III: the cosines between a token's layers, and their variance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from twinvec.encoder import Encoder, LayerBatch
from twinvec.errors import InputError
from twinvec.lab.function_words import FUNCTION_WORDS
from twinvec.lab.words import MovingWord, words_of
from twinvec.progress import Progress
from twinvec.wk import WKSettings, layer_cosines

__all__ = ["LayerSurvey", "check_has_layers", "survey_layers"]

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
