"""InferSent and DAN as embedders: small networks over word vectors, without torch.

InferSent (Conneau et al. 2017) is a BiLSTM with max pooling. DAN (Iyyer et al. 2015) is a feed-forward network over the
mean of the vectors of all words and, as in the Universal Sentence Encoder (Cer et al. 2018), of all bigrams. The folder
is our own: ``embedder.json``, ``model.safetensors``, and ``words``, a folder of word vectors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from twinvec.baselines.word_vectors import WordVectors, write_words
from twinvec.choices import Role, StoredPrecision
from twinvec.engine.batches import EngineSettings, Streams, pad, plan_batches
from twinvec.engine.graph import Graph, GraphBuilder
from twinvec.engine.runtimes import open_session
from twinvec.engine.static import mean_rows
from twinvec.engine.weights import check_array, pack_int8, read_weights
from twinvec.errors import ModelFolderError, WeightsError
from twinvec.files import read_json, write_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import EMBEDDER_FILE
from twinvec.model.identity import file_states, model_digest, model_files
from twinvec.types import Ids, Vectors

__all__ = ["DanEmbedder", "InferSentEmbedder", "bigram_rows", "write_word_network"]

INFERSENT, DAN = "infersent", "dan"
WORDS_FOLDER = "words"
HINT = "Train the model again, or restore the folder."
BELOW_ALL = -2.0  # the states of an LSTM are from -1 to 1
TORCH_GATES = (0, 3, 1, 2)  # ONNX orders the gates of an LSTM input, output, forget, cell; torch input, forget, ...
DIRECTIONS = ("", "_reverse")
ROWS_PER_PRODUCT = 1024


class WordNetwork:
    """A network over word vectors, opened from its folder; the base of InferSent and DAN.

    A text without any known word gets a zero vector; ``n_empty`` counts such texts, and the first call with any logs a
    warning. Texts of any length are read whole.
    """

    kind = ""
    similarity = "cosine"

    def __init__(self, folder: str | os.PathLike[str], name: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = name or str(self.folder)
        self._as_opened = file_states(model_files(self.folder))
        about = JsonObject(read_json(self.folder / EMBEDDER_FILE), self.folder / EMBEDDER_FILE, hint=HINT)
        about.word("kind", choices=(self.kind,))
        self.width: int = about.integer("width")
        self.words = WordVectors(self.folder / WORDS_FOLDER, self.name)
        self.settings: Mapping[str, Any] = {"kind": self.kind, "lower_case": self.words.lower_case}
        stored = {name: np.asarray(array, dtype=np.float32) for name, array in read_weights(self.folder).items()}
        self._start(stored)
        self._as_opened.check()

    def _start(self, weights: Mapping[str, Vectors]) -> None:
        raise NotImplementedError

    def _vectors(self, ids: NDArray[np.int32], counts: Ids) -> Vectors:
        raise NotImplementedError

    @property
    def n_empty(self) -> int:
        """How many texts had no known word."""
        return self.words.n_empty

    @cached_property
    def identity(self) -> str:
        """A digest of the folder's files."""
        digest = model_digest(self.folder)
        self._as_opened.check()
        return f"{self.kind}-{digest}"

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``; up to rounding, they do not depend on the other texts."""
        return self.words.embed_rows(texts, self._vectors, self.width)

    def _check(self, weights: Mapping[str, Vectors], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse weights that are missing, not finite, or of another shape."""
        missing = sorted(set(shapes) - set(weights))
        if missing:
            raise WeightsError(f"{self.folder} lacks the weights {', '.join(missing[:5])}.", hint=HINT)
        for name, shape in shapes.items():
            check_array(weights[name], shape, f"{self.folder}: {name}")


class InferSentEmbedder(WordNetwork):
    """An embedder: a BiLSTM over the words of a text, and the maximum of its states over the text.

    ``folder`` is from ``twinvec.train`` with ``network = "infersent"``. The vector has the forward states, then the
    backward ones.
    """

    kind = INFERSENT

    def _start(self, weights: Mapping[str, Vectors]) -> None:
        if self.width % 2:
            raise ModelFolderError(f"{self.folder}: the width {self.width} of two directions is odd.", hint=HINT)
        hidden, gates = self.width // 2, self.width * 2
        shapes: dict[str, tuple[int, ...]] = {}
        for way in DIRECTIONS:
            shapes |= {f"weight_ih_l0{way}": (gates, self.words.width), f"weight_hh_l0{way}": (gates, hidden)}
            shapes |= {f"bias_{part}_l0{way}": (gates,) for part in ("ih", "hh")}
        self._check(weights, shapes)
        engine = EngineSettings()
        self._streams, self._budget = Streams(engine.n_streams), engine.tokens_per_batch
        self._session = open_session(lstm_graph(weights, self.words.width, hidden))

    def _vectors(self, ids: NDArray[np.int32], counts: Ids) -> Vectors:
        vectors = np.zeros((len(counts), self.width), dtype=np.float32)
        starts = np.cumsum(counts) - counts
        texts = np.flatnonzero(counts)

        def work(batch: list[int]) -> None:
            chosen = texts[batch]
            tokens = pad([ids[starts[text] : starts[text] + counts[text]].tolist() for text in chosen])
            feed = {"mask": tokens.mask, "states": self.words.vectors[tokens.ids]}
            vectors[chosen] = self._session.run(None, feed)[0]

        self._streams.run(iter(plan_batches(counts[texts].tolist(), self._budget)), work)
        return vectors


def lstm_graph(weights: Mapping[str, Vectors], width: int, hidden: int) -> Graph:
    """The graph from word vectors, ``(batch, tokens, width)``, and ``mask`` to ``vectors``, ``(batch, 2 * hidden)``."""
    graph = GraphBuilder()

    def gates(name: str) -> Vectors:
        both = [weights[f"{name}_l0{way}"] for way in DIRECTIONS]
        parts = [np.split(each, 4)[gate] for each in both for gate in TORCH_GATES]
        return np.concatenate(parts).reshape(2, 4 * hidden, *both[0].shape[1:])

    biases = np.concatenate([gates("bias_ih"), gates("bias_hh")], axis=1)
    inputs = [
        graph.add("Transpose", "states", perm=[1, 0, 2]),
        graph.weight("input", gates("weight_ih")),
        graph.weight("recurrent", gates("weight_hh")),
        graph.weight("bias", biases),
        graph.add("Cast", graph.add("ReduceSum", "mask", graph.axes(1), keepdims=0), to=6),  # int32: the lengths
    ]
    states = graph.add("LSTM", *inputs, hidden_size=hidden, direction="bidirectional")  # (tokens, 2, batch, hidden)
    is_word = graph.add("Cast", graph.add("Transpose", "mask", perm=[1, 0]), to=9)  # bool
    is_word = graph.add("Unsqueeze", is_word, graph.axes(1, 3))
    states = graph.add("Where", is_word, states, graph.constant(BELOW_ALL))
    best = graph.add("Transpose", graph.add("ReduceMax", states, graph.axes(0), keepdims=0), perm=[1, 0, 2])
    vectors = graph.add("Reshape", best, graph.axes(0, 2 * hidden))
    return graph.build({"vectors": (vectors, ["batch", 2 * hidden])}, ["mask"], states_shape=["batch", "tokens", width])


class DanEmbedder(WordNetwork):
    """An embedder: a feed-forward network over the mean of the vectors of a text's words and bigrams.

    ``folder`` is from ``twinvec.train`` with ``network = "dan"``. The vectors of bigrams are learned; a bigram finds
    its vector by hashing, so different bigrams may share one.
    """

    kind = DAN

    def _start(self, weights: Mapping[str, Vectors]) -> None:
        n_layers = sum(name.startswith("layers.") and name.endswith(".weight") for name in weights)
        self._bigrams = weights.get("bigrams", np.zeros((0, 0), dtype=np.float32))
        if not n_layers or not self._bigrams.size:
            raise WeightsError(f"{self.folder} lacks the weights of bigrams or layers.", hint=HINT)
        shapes: dict[str, tuple[int, ...]] = {"bigrams": (len(self._bigrams), self.words.width)}
        for index in range(n_layers):
            n_in = self.words.width if index == 0 else self.width
            shapes |= {f"layers.{index}.weight": (self.width, n_in), f"layers.{index}.bias": (self.width,)}
        self._check(weights, shapes)
        self._layers = [(weights[f"layers.{i}.weight"].T, weights[f"layers.{i}.bias"]) for i in range(n_layers)]

    def _vectors(self, ids: NDArray[np.int32], counts: Ids) -> Vectors:
        vectors = np.zeros((len(counts), self.width), dtype=np.float32)
        texts = np.flatnonzero(counts)
        means = self._means(ids, counts[texts])
        for first in range(0, len(texts), ROWS_PER_PRODUCT):
            states = means[first : first + ROWS_PER_PRODUCT]
            for matrix, bias in self._layers:
                states = np.tanh(states @ matrix + bias)
            vectors[texts[first : first + ROWS_PER_PRODUCT]] = states
        return vectors

    def _means(self, ids: NDArray[np.int32], counts: Ids) -> Vectors:
        """The mean over the words and bigrams of each text, ``(len(counts), word width)``; no count is 0."""
        words, word_rows = np.unique(ids, return_inverse=True)
        buckets, bucket_rows = np.unique(bigram_rows(ids, counts, len(self._bigrams)), return_inverse=True)
        table = np.concatenate([self.words.vectors[words], self._bigrams[buckets]])
        owners = np.concatenate([np.repeat(np.arange(len(counts)), each) for each in (counts, counts - 1)])
        rows = np.concatenate([word_rows, bucket_rows + len(words)])[np.argsort(owners, kind="stable")]
        totals = 2 * counts - 1
        return mean_rows(table, rows.astype(np.int32), np.cumsum(totals) - totals, totals)


def bigram_rows(ids: NDArray[np.int32] | Ids, counts: Ids, n_buckets: int) -> Ids:
    """The bucket of each pair of neighbors inside a text, ``(len(ids) - len(counts),)``; no count is 0.

    >>> bigram_rows(np.array([7, 8, 7, 8], dtype=np.int32), np.array([3, 1]), 1000).tolist()
    [190, 781]
    """
    last = np.cumsum(counts) - 1
    left = np.delete(np.arange(len(ids)), last)
    mixed = ids[left].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + ids[left + 1].astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)  # so that all bits matter
    return np.asarray((mixed ^ (mixed >> np.uint64(32))) % np.uint64(n_buckets), dtype=np.int64)


def write_word_network(
    path: Path,
    kind: str,
    words: WordVectors,
    weights: Mapping[str, Vectors],
    *,
    width: int,
    vectors: Vectors | None = None,
    stored: StoredPrecision = "float32",
) -> None:
    """Write a network to ``path``, an existing empty folder, with all of its ``words``; ``vectors`` replaces theirs."""
    write_json(path / EMBEDDER_FILE, {"kind": kind, "width": width, "words": words.n_words, "word_width": words.width})
    packed = pack_int8(weights) if stored == "int8" else weights
    save_file({name: np.ascontiguousarray(array) for name, array in packed.items()}, path / "model.safetensors")
    (path / WORDS_FOLDER).mkdir()
    write_words(words, path / WORDS_FOLDER, words.vectors if vectors is None else vectors)
