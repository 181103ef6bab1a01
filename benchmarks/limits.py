"""What the time of encoding is made of, and how far it is from what this CPU can do.

    python benchmarks/limits.py [--model FOLDER] [--data FOLDER]

The limit is the rate of the bare matrix products, of the model's own shapes, on all cores at once: an encoder that
did nothing else would reach it. Shares of operators come from onnxruntime's profiler.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import onnxruntime
from common import arguments, sts_sentences, write_result

import twinvec
from twinvec.engine.graph import MICROSOFT, Graph, GraphBuilder
from twinvec.engine.model import Model, read_model
from twinvec.engine.onnx_runtime import open_session
from twinvec.types import Precision

ROWS = 512  # tokens of a batch
ROUNDS = 7


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


def rate(n_in: int, n_out: int, precision: Precision, cores: int) -> float:
    """Multiply-adds per second of one product on all cores at once, best of some rounds."""
    session = open_session(product_graph(n_in, n_out, precision))
    feed = {"states": np.ones((1, ROWS, n_in), dtype=np.float32)}

    def work() -> None:
        for _ in range(20):
            session.run(None, feed)

    seconds = []
    for _ in range(ROUNDS + 1):
        threads = [Thread(target=work) for _ in range(cores)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds.append(time.perf_counter() - started)
    return 20 * cores * ROWS * n_in * n_out / min(seconds)


def texts_per_second(run: Callable[[], object], count: int) -> float:
    """Best of some rounds, after one that warms: the limit is that of the best round too."""
    run()
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return count / min(seconds)


def operator_shares(model: Model) -> dict[str, float]:
    """Share of each operator in the time of one batch of typical length."""
    graph = model.graph()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in graph.weights.values()]
        options.add_external_initializers(list(graph.weights), values)
        session = onnxruntime.InferenceSession(graph.proto.SerializeToString(), options)
        ids = np.random.default_rng(0).integers(1000, 20_000, (34, 15))
        feed = {"ids": ids, "mask": np.ones_like(ids), "pool_mask": np.ones_like(ids)}
        for _ in range(30):
            session.run(None, feed)
        events = json.loads(Path(session.end_profiling()).read_text())
    times: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            kind = event["args"]["op_name"]
            # attention's products have four axes, those of linear layers three
            shapes = event["args"].get("output_type_shape") or [{}]
            is_linear = kind == "MatMul" and len(next(iter(shapes[0].values()), [])) == 3
            times["linear layers" if is_linear else kind] += event["dur"]
    total = sum(times.values())
    return {name: round(value / total, 3) for name, value in times.most_common(8)}


def main() -> None:
    """Measure, print, write."""
    options = arguments(__doc__).parse_args()
    texts, source = sts_sentences(options.data, 2_000)
    rows: list[dict[str, Any]] = []
    precisions: tuple[Precision, ...] = ("float32", "int8")
    for precision in precisions:
        encoder = twinvec.load(options.model, precision=precision, long="cut")
        model = read_model(encoder.folder)
        sizes = products(model)
        n_tokens = float(np.minimum(encoder.count_tokens(texts), encoder.max_tokens or np.inf).mean())
        rates = {size: rate(*size, precision, encoder.settings.n_streams) for size in set(sizes)}
        seconds = sum(n_in * n_out / rates[n_in, n_out] for n_in, n_out in sizes) * model.backbone.n_layers * n_tokens
        reached = texts_per_second(lambda encoder=encoder: encoder.encode(texts, progress=False), len(texts))  # type: ignore[misc]
        rows.append(
            {
                "precision": precision,
                "products_gflops_all_cores": round(2e-9 * float(np.mean(list(rates.values()))), 1),
                "limit_texts_per_second": round(1 / seconds),
                "texts_per_second": round(reached),
                "share_of_limit": round(reached * seconds, 2),
            }
        )
        print(json.dumps(rows[-1]))
    shares = operator_shares(read_model(twinvec.load(options.model).folder))
    print(json.dumps(shares))
    write_result("limits", {"model": options.model.name, "texts": source, "rows": rows, "float32_shares": shares})


if __name__ == "__main__":
    main()
