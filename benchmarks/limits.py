"""Where encoding spends its time, and how close it is to the limit of this CPU.

    python benchmarks/limits.py [--model FOLDER] [--own NAME] [--data FOLDER] [--rounds 7]

The limit is the rate of the matrix products alone, in the model's shapes, on all cores at the same time: an encoder
that did nothing else would reach it. The shares of the operators come from onnxruntime's profiler, on one core, for a
batch of texts of mean length. MODEL and our own model are measured in float32 and in int8.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import numpy as np
import onnxruntime
from common import arguments, sts_sentences, write_result
from numpy.typing import NDArray

import twinvec
from twinvec.choices import Precision
from twinvec.engine.calibration import measure_ranges
from twinvec.engine.graph import MICROSOFT, Graph, GraphBuilder
from twinvec.engine.int8 import Int8Linear, fold_contexts
from twinvec.engine.model import Model, read_model
from twinvec.engine.runtimes import open_session

ROWS = 512  # tokens per batch
BATCHES = 50  # to profile
GROUPS = {
    "linear layers": ("MatMulIntegerToFloat", "MatMul", "FusedMatMul", "Gemm"),
    "attention's products": (),
    "quantize": ("QuantizeLinear", "DequantizeLinear", "ReduceMax", "Abs", "Max", "Mul", "Squeeze", "Expand"),
    "activation": ("BiasGelu", "FastGelu", "Gelu", "Relu", "Erf", "Tanh"),
    "norm": ("LayerNormalization", "SkipLayerNormalization", "SimplifiedLayerNormalization"),
    "softmax, transpose": ("Softmax", "Transpose", "Split"),
    "add": ("Add",),
    "gather": ("Gather",),
    "other": (),
}
GROUP_OF = {operator: group for group, operators in GROUPS.items() for operator in operators}


def products(model: Model) -> list[tuple[int, int]]:
    """Sizes (in, out) of the linear layers of one block."""
    return [
        (array.shape[1], array.shape[0])
        for name, array in model.weights.items()
        if name.startswith("blocks.0.") and array.ndim == 2
    ]


def product_graph(n_in: int, n_out: int, precision: Precision) -> Graph:
    """One matrix product alone, over ``states`` (1, rows, n_in)."""
    rng, builder = np.random.default_rng(0), GraphBuilder()
    if precision == "float32":
        weight = builder.weight("w", rng.standard_normal((n_in, n_out)).astype(np.float32))
        result = builder.add("MatMul", "states", weight)
    else:
        weight = builder.weight("w", rng.integers(-60, 60, (n_in, n_out)).astype(np.int8))
        scales = builder.weight("s", np.ones(n_out, dtype=np.float32))
        rows = builder.weight("rows", rng.integers(0, 255, (ROWS, n_in)).astype(np.uint8))
        result = builder.add("MatMulIntegerToFloat", rows, weight, builder.constant(1.0), scales, domain=MICROSOFT)
    return builder.build({"y": (result, ["batch", "tokens", n_out])}, [], states_shape=["batch", "tokens", n_in])


def rate(n_in: int, n_out: int, precision: Precision, cores: int, rounds: int) -> float:
    """Multiply-adds per second of one product on all cores at the same time, in the best round."""
    session = open_session(product_graph(n_in, n_out, precision))
    feed = {"states": np.ones((1, ROWS, n_in), dtype=np.float32)}

    def work() -> None:
        for _ in range(20):
            session.run(None, feed)

    seconds = []
    for _ in range(rounds + 1):
        threads = [Thread(target=work) for _ in range(cores)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds.append(time.perf_counter() - started)
    return 20 * cores * ROWS * n_in * n_out / min(seconds)


def texts_per_second(run: Callable[[], object], count: int, rounds: int) -> float:
    """The rate of the best round, after a warm-up; the limit also comes from the best round."""
    run()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return count / min(seconds)


def rebuilt_graph(encoder: twinvec.Encoder) -> Graph:
    """The graph of the encoder, built again."""
    model = read_model(encoder.folder)
    if encoder.engine.precision == "float32":
        return model.graph()
    ranges = measure_ranges(model, encoder.tokenizer)
    folded = replace(model, weights=fold_contexts(model.weights, ranges))
    return folded.graph(linear=partial(Int8Linear, ranges=ranges))


def profile(graph: Graph, ids: NDArray[np.int64]) -> list[dict[str, Any]]:
    """The events of onnxruntime's profiler for each operator and batch, on one core."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    feed = {"ids": ids, "mask": np.ones_like(ids), "pool_mask": np.ones_like(ids)}
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in graph.weights.values()]
        options.add_external_initializers(list(graph.weights), values)
        session = onnxruntime.InferenceSession(graph.proto.SerializeToString(), options)
        for _ in range(BATCHES):
            session.run(None, feed)
        events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return [event for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]


def group_of(event: dict[str, Any]) -> str:
    """The group of an operator."""
    kind = event["args"]["op_name"]
    shapes = event["args"].get("output_type_shape") or [{}]
    has_heads = len(next(iter(shapes[0].values()), [])) == 4  # the states of linear layers have two or three axes
    return "attention's products" if kind in ("MatMul", "FusedMatMul") and has_heads else GROUP_OF.get(kind, "other")


def operator_shares(encoder: twinvec.Encoder, n_tokens: float) -> dict[str, Any]:
    """The share of each group of operators in the time of one batch of texts of typical length.

    Each operator counts with its median over all batches, so that interruptions do not matter.
    """
    length = round(n_tokens)
    ids = np.random.default_rng(0).integers(0, encoder.engine.n_vocabulary, (ROWS // length, length))
    durations: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for event in profile(rebuilt_graph(encoder), ids):
        key = event["args"]["node_index"], event["args"]["op_name"], group_of(event)
        durations[key].append(event["dur"])
    groups, operators = dict.fromkeys(GROUPS, 0.0), defaultdict[str, float](float)
    for (_, operator, group), found in durations.items():
        groups[group] += median(found)
        operators[operator] += median(found)
    total = sum(groups.values())
    largest = sorted(operators, key=operators.__getitem__, reverse=True)[:12]
    return {
        "profiled_batch": list(ids.shape),
        "shares": {name: round(value / total, 3) for name, value in groups.items()},
        "operators": {name: round(operators[name] / total, 3) for name in largest},
    }


def typical_length(encoder: twinvec.Encoder, texts: list[str]) -> float:
    """Mean number of tokens of the texts, up to the model's limit."""
    return float(np.minimum(encoder.count_tokens(texts), encoder.max_tokens or np.inf).mean())


def measured_limit(encoder: twinvec.Encoder, texts: list[str], n_tokens: float, rounds: int) -> dict[str, Any]:
    """The rate of the matrix products alone, and the rate of the encoder."""
    model, precision = read_model(encoder.folder), encoder.engine.precision
    sizes = products(model)
    rates = {size: rate(*size, precision, encoder.settings.n_streams, rounds) for size in set(sizes)}
    seconds = sum(n_in * n_out / rates[n_in, n_out] for n_in, n_out in sizes) * model.backbone.n_layers * n_tokens
    reached = texts_per_second(lambda: encoder.encode(texts, progress=False), len(texts), rounds)
    return {
        "products_gflops_all_cores": round(2e-9 * float(np.mean(list(rates.values()))), 1),
        "limit_texts_per_second": round(1 / seconds),
        "texts_per_second": round(reached),
        "share_of_limit": round(reached * seconds, 2),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--own", default="twinvec-mini", help="our model, also measured")
    options = parser.parse_args()
    texts, source = sts_sentences(options.data, 2_000)
    rows: list[dict[str, Any]] = []
    precisions: tuple[Precision, ...] = ("float32", "int8")
    for model in (options.model, options.own):
        for precision in precisions:
            encoder = twinvec.load(model, precision=precision, long="cut")
            n_tokens = typical_length(encoder, texts)
            row = {"model": Path(model).name, "precision": precision, "mean_tokens": round(n_tokens, 1)}
            row |= measured_limit(encoder, texts, n_tokens, options.rounds)
            rows.append(row | operator_shares(encoder, n_tokens))
            print(json.dumps(rows[-1]))
    write_result("limits", {"model": options.model.name, "own": options.own, "texts": source, "rows": rows})


if __name__ == "__main__":
    main()
