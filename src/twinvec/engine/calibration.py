"""The range of each linear layer's inputs, measured on sample texts and random token ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from twinvec.engine.batches import plan_equal
from twinvec.engine.config import Backbone
from twinvec.engine.graph import Graph, GraphBuilder
from twinvec.engine.linear import FloatLinear, Stream
from twinvec.engine.model import Model
from twinvec.engine.runtimes import open_session
from twinvec.model.tokenizer import Tokenizer
from twinvec.types import TokenBatch, Vectors

__all__ = ["Join", "Ranges", "measure_ranges", "sample_texts"]

WHO = (
    "The committee",
    "A young girl in a red coat",
    "My neighbor",
    "The new version of the program",
    "An old fisherman from the village",
    "Nobody",
    "The bank",
    "Our team of five engineers",
    "A large brown dog",
    "The museum near the station",
    "Her doctor",
)
WHAT = (
    "opened the door",
    "explained why prices rose so quickly last winter",
    "is waiting",
    "lost the keys to the car",
    "published a report about water, energy and food in dry regions",
    "plays the violin",
    "found an error in the third chapter",
    "asked how long the journey by train to the coast would take",
    "cooks soup",
    "was repaired within a week",
)
WHEN = (
    "",
    " today",
    " after the meeting in the city hall",
    " while it was raining",
    " although several experts had warned against it at the beginning of the year",
    " in 1998",
    ", and then everyone went home",
    " because the contract, which both sides had signed in March, left them no choice",
    " again",
)


def sample_texts(n: int) -> list[str]:
    """The first ``n`` of 990 different sentences, 15 words long on average.

    >>> sample_texts(3)[2], len(set(sample_texts(5000)))
    ('My neighbor is waiting after the meeting in the city hall.', 990)
    """
    # 11, 10 and 9 have no common factor: stepping through the three lists at once meets every mix once
    n = min(n, len(WHO) * len(WHAT) * len(WHEN))
    return [f"{WHO[i % len(WHO)]} {WHAT[i % len(WHAT)]}{WHEN[i % len(WHEN)]}." for i in range(n)]


LENGTHS = (0, 1, 2, 3, 5, 10, 20, 40, 64)  # without special tokens
RANDOM_PER_LENGTH = 4
N_SAMPLES = 40
N_SPECIAL = 8  # most tokenizers have five
SPECIAL_REPEATS = (1, 4)
TOKENS_PER_BATCH = 512

# The ids of a text as a model reads them, special tokens included, and the types of these tokens.
Join = Callable[[Sequence[int]], tuple[list[int], list[int]]]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Lowest, highest and mean value of each channel that a linear layer reads, each ``(channels,)``."""

    low: Vectors
    high: Vectors
    mean: Vectors


@dataclass(frozen=True)
class _Recorder:
    """Float layers that also note what each of them reads."""

    graph: GraphBuilder
    backbone: Backbone
    weights: Mapping[str, Vectors]
    read: list[tuple[str, str]] = field(default_factory=list)  # the layer's name, the result it reads

    @property
    def _float(self) -> FloatLinear:
        return FloatLinear(self.graph, self.backbone, self.weights)

    def enter(self, states: str) -> str:
        return self._float.enter(states)

    def leave(self, states: str) -> str:
        return self._float.leave(states)

    def along_tokens(self, rows: str) -> str:
        return self._float.along_tokens(rows)

    def heads(self, stream: Stream, block: int) -> list[str]:
        self.read.append((f"blocks.{block}.qkv", stream.states))
        return self._float.heads(stream, block)

    def attend(self, query: str, key: str, value: str, bias: str) -> str:
        return self._float.attend(query, key, value, bias)

    def out(self, attended: str, block: int, residual: Stream) -> str:
        self.read.append((f"blocks.{block}.out", attended))
        return self._float.out(attended, block, residual)

    def inner(self, stream: Stream, block: int) -> str:
        self.read.append((f"blocks.{block}.inner", stream.states))
        return self._float.inner(stream, block)

    def activate(self, values: str) -> str:
        return self._float.activate(values)

    def outer(self, inner: str, block: int, residual: Stream) -> str:
        self.read.append((f"blocks.{block}.outer", inner))
        return self._float.outer(inner, block, residual)


def measure_ranges(
    model: Model, tokenizer: Tokenizer, *, threads: int = 1, join: Join | None = None
) -> dict[str, Ranges]:
    """Ranges of every linear layer's input, by the layer's name. ``join`` is for models that read pairs."""
    graph, names = _ranges_graph(model)
    session = open_session(graph, threads=threads)
    bodies = _calibration_bodies(model.backbone, tokenizer)
    joined = [(tokenizer.add_special_tokens(body), []) if join is None else join(body) for body in bodies]
    rows = [ids for ids, _ in joined]
    n_tokens = sum(len(row) for row in rows)
    found: dict[str, Ranges] = {}
    for indices in plan_equal([len(row) for row in rows], TOKENS_PER_BATCH):
        ids = np.array([rows[i] for i in indices], dtype=np.int64)
        types = np.array([joined[i][1] for i in indices], dtype=np.int64) if model.has_types else None
        mask = np.ones_like(ids)
        results = iter(session.run(None, TokenBatch(ids, mask, mask, types).feed()))
        for name, low, high, mean in zip(names, results, results, results, strict=False):
            here = Ranges(low, high, mean * (ids.size / n_tokens / names.count(name)))
            found[name] = _joined(found[name], here) if name in found else here
    return found


def _joined(left: Ranges, right: Ranges) -> Ranges:
    return Ranges(np.minimum(left.low, right.low), np.maximum(left.high, right.high), left.mean + right.mean)


def _calibration_bodies(backbone: Backbone, tokenizer: Tokenizer) -> list[list[int]]:
    rng = np.random.default_rng(0)
    room = backbone.n_positions - tokenizer.n_special
    bodies = tokenizer.ids(sample_texts(N_SAMPLES))
    for length in LENGTHS:
        bodies += rng.integers(backbone.n_vocabulary, size=(RANDOM_PER_LENGTH, length)).tolist()
        bodies.append([int(rng.integers(backbone.n_vocabulary))] * length)
    # Special tokens hardly ever come up by chance, and reach further than words do: a text may hold a literal [PAD].
    special = [id_ for id_ in tokenizer.special_ids() if id_ < backbone.n_vocabulary]
    bodies += [[id_] * n for id_ in special[:N_SPECIAL] for n in SPECIAL_REPEATS]
    return [body[:room] for body in bodies]


def _ranges_graph(model: Model) -> tuple[Graph, list[str]]:
    builder = GraphBuilder()
    recorder = _Recorder(builder, model.backbone, model.weights)
    model.layers(builder, recorder).all_states()
    outputs: dict[str, tuple[str, list[str | int]]] = {}
    for index, (_, result) in enumerate(recorder.read):
        for operator in ("ReduceMin", "ReduceMax", "ReduceMean"):
            reduced = builder.add(operator, result, builder.axes(0, 1), keepdims=0)
            outputs[f"{operator}_{index}"] = reduced, ["channels"]
    return builder.build(outputs, model.inputs), [name for name, _ in recorder.read]
