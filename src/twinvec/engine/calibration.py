"""Calibration: the range of each linear layer's inputs, measured on sample texts and random token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

SUBJECTS = (
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
PREDICATES = (
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
ENDINGS = (
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
    # 11, 10 and 9 have no common factor: stepping through the three lists in parallel meets every combination once
    lists = SUBJECTS, PREDICATES, ENDINGS
    n = min(n, len(SUBJECTS) * len(PREDICATES) * len(ENDINGS))
    return ["{} {}{}.".format(*(parts[i % len(parts)] for parts in lists)) for i in range(n)]


LENGTHS = (0, 1, 2, 3, 5, 10, 20, 40, 64)  # without special tokens
RANDOM_PER_LENGTH = 4
N_SAMPLES = 40
N_SPECIAL = 8  # special tokens; most tokenizers have five
SPECIAL_REPEATS = (1, 4)
TOKENS_PER_BATCH = 512

# Adds special tokens to the ids of a text; returns all ids and their token types.
Join = Callable[[Sequence[int]], tuple[list[int], list[int]]]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Lowest, highest and mean value of each input channel of a linear layer, each ``(channels,)``."""

    low: Vectors
    high: Vectors
    mean: Vectors


@dataclass(frozen=True)
class _Recorder(FloatLinear):
    """Float layers that record the input of each linear layer. The texts of a batch have equal length: no padding."""

    inputs: list[tuple[str, str]] = field(default_factory=list)  # (name of the layer, name of its input)

    def enter(self, states: str) -> str:
        return states

    def leave(self, states: str) -> str:
        return states

    def rows(self, states: str, width: int) -> str:
        return self.graph.add("Reshape", states, self.graph.axes(0, 0, width))

    def padded(self, rows: str, *widths: int) -> str:
        return self.graph.add("Reshape", rows, self.graph.axes(0, 0, *widths))

    def heads(self, stream: Stream, block: int) -> list[str]:
        self.inputs.append((f"blocks.{block}.qkv", stream.states))
        return super().heads(stream, block)

    def out(self, attended: str, block: int, residual: Stream) -> str:
        self.inputs.append((f"blocks.{block}.out", attended))
        return super().out(attended, block, residual)

    def inner(self, stream: Stream, block: int) -> str:
        self.inputs.append((f"blocks.{block}.inner", stream.states))
        return super().inner(stream, block)

    def outer(self, inner: str, block: int, residual: Stream) -> str:
        self.inputs.append((f"blocks.{block}.outer", inner))
        return super().outer(inner, block, residual)


def measure_ranges(
    model: Model, tokenizer: Tokenizer, *, threads: int = 1, join: Join | None = None
) -> dict[str, Ranges]:
    """The input ranges of all linear layers, by layer name. ``join`` is for models that read pairs."""
    graph, names = _ranges_graph(model)
    session = open_session(graph, threads=threads)
    bodies = _calibration_bodies(model.backbone, tokenizer)
    joined = [(tokenizer.add_special_tokens(body), []) if join is None else join(body) for body in bodies]
    rows = [ids for ids, _ in joined]
    n_tokens = sum(len(row) for row in rows)
    ranges: dict[str, Ranges] = {}
    for indices in plan_equal([len(row) for row in rows], TOKENS_PER_BATCH):
        ids = np.array([rows[i] for i in indices], dtype=np.int64)
        types = np.array([joined[i][1] for i in indices], dtype=np.int64) if model.has_types else None
        mask = np.ones_like(ids)
        results = iter(session.run(None, TokenBatch(ids, mask, mask, types).feed()))
        for name, low, high, mean in zip(names, results, results, results, strict=False):
            here = Ranges(low, high, mean * (ids.size / n_tokens / names.count(name)))
            ranges[name] = _joined(ranges[name], here) if name in ranges else here
    return ranges


def _joined(left: Ranges, right: Ranges) -> Ranges:
    return Ranges(np.minimum(left.low, right.low), np.maximum(left.high, right.high), left.mean + right.mean)


def _calibration_bodies(backbone: Backbone, tokenizer: Tokenizer) -> list[list[int]]:
    rng = np.random.default_rng(0)
    room = backbone.n_positions - tokenizer.n_special
    bodies = tokenizer.ids(sample_texts(N_SAMPLES))
    for length in LENGTHS:
        bodies += rng.integers(backbone.n_vocabulary, size=(RANDOM_PER_LENGTH, length)).tolist()
        bodies.append([int(rng.integers(backbone.n_vocabulary))] * length)
    # Random ids rarely include special tokens, which have larger ranges than words: a text may contain a literal [PAD].
    special = [id_ for id_ in tokenizer.special_ids() if id_ < backbone.n_vocabulary]
    bodies += [[id_] * n for id_ in special[:N_SPECIAL] for n in SPECIAL_REPEATS]
    return [body[:room] for body in bodies]


def _ranges_graph(model: Model) -> tuple[Graph, list[str]]:
    builder = GraphBuilder()
    recorder = _Recorder(builder, model.backbone, model.weights)
    model.layers(builder, recorder).all_states()
    outputs: dict[str, tuple[str, list[str | int]]] = {}
    for index, (_, result) in enumerate(recorder.inputs):
        for operator in ("ReduceMin", "ReduceMax", "ReduceMean"):
            reduced = builder.add(operator, result, builder.axes(0, 1), keepdims=0)
            outputs[f"{operator}_{index}"] = reduced, ["channels"]
    return builder.build(outputs, model.inputs), [name for name, _ in recorder.inputs]
