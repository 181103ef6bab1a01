"""An index of one or forty million vectors: build time, size, memory, recall@10, milliseconds per query.

    python benchmarks/index.py --n 1000000 [--recall 0.98] [--max-memory 10] [--folder FOLDER]
    python benchmarks/index.py --n 40000000 --recall 0.9

The stored vectors are perturbed vectors of real texts (``vector_sets.py``), generated from a seed whenever they are
read; the queries are made in the same way from other texts. The vectors for exact scoring are on disk, as a user would
keep them: float32 up to five million, int8 above. The ground truth is exact search over all vectors in float32.
``choose_index`` chooses the index. Half of the queries determine the effort that reaches the recall; the others are
measured. Every stage runs in its own process and stores its result in the folder, so that a stopped run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, write_result
from index_stages import build, make_vectors, measure
from vector_sets import HELD_OUT, Perturbed, real_texts, real_vectors

from twinvec.choices import show_size
from twinvec.types import Vectors

N_QUERIES = 400
MOST_FLOAT32 = 5_000_000
THREADS = (1, 2)
LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.set_defaults(model="twinvec-mini", rounds=5)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--texts", type=int, help="real texts to embed (default: all)")
    parser.add_argument("--noise", type=float, default=0.5, help="length of the noise; vectors have length 1")
    parser.add_argument("--noise-shape", choices=["real", "even"], default="real")
    parser.add_argument(
        "--stored", choices=["float32", "float16", "int8"], help="type of the vectors for exact scoring"
    )
    parser.add_argument("--recall", type=float, default=0.98, help="recall@10 to reach")
    parser.add_argument("--max-memory", type=float, default=10, help="memory limit of the index, in GB")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "twinvec-benchmark")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.stored = options.stored or ("float32" if options.n <= MOST_FLOAT32 else "int8")
    return options


def folder_of(options: argparse.Namespace) -> Path:
    """The folder of this set of vectors."""
    name = f"{Path(str(options.model)).name}-{options.n}-{options.noise}-{options.noise_shape}-{options.stored}"
    return Path(options.folder) / name


def sets_of(options: argparse.Namespace) -> tuple[Perturbed, Vectors]:
    """The stored vectors, and the queries ``(N_QUERIES, width)``."""
    texts, _ = real_texts(options.data)
    real = np.array(real_vectors(texts[: options.texts], str(options.model), options.folder))
    stored = Perturbed(real[:-HELD_OUT], options.n, options.noise, options.noise_shape)
    return stored, Perturbed(real[-HELD_OUT:], N_QUERIES, options.noise, options.noise_shape, seed=1)[:]


def run_stage(stage: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a stage in this process."""
    folder = folder_of(options)
    if stage.startswith("search"):  # without the real vectors, to measure the memory of a search
        return measure(folder, options.stored, recall=options.recall, rounds=options.rounds)
    stored, queries = sets_of(options)
    if stage == "build":
        return build(stored, folder, int(options.max_memory * 1e9))
    return make_vectors(stored, queries, folder, options.stored)


def staged(stage: str, options: argparse.Namespace, threads: int) -> dict[str, Any]:
    """The result of a stage, which runs in its own process on some of the cores unless it has run before."""
    kept = folder_of(options) / f"{stage}.json"
    if not kept.exists():
        print(f"stage {stage}", file=sys.stderr, flush=True)
        cores = sorted(os.sched_getaffinity(0))[:threads]
        command = [sys.executable, __file__, *sys.argv[1:], "--stage", stage]
        environment = {**os.environ, **dict.fromkeys(LIBRARIES, str(threads))}
        os.sched_setaffinity(0, cores)  # inherited by the process
        try:
            subprocess.run(command, env=environment, check=True)
        finally:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
    content: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return content


def show(vectors: dict[str, Any], built: dict[str, Any], searched: dict[int, dict[str, Any]]) -> None:
    """Print the results."""
    print(f"\n{built['words']}")
    print(
        f"built in {built['seconds']} s (of which {built['train_seconds']} s to train on a sample), "
        f"{show_size(built['index_bytes'])} on disk, plus {show_size(vectors['stored_bytes'])} "
        f"of {vectors['stored']} vectors, peak {built['peak_mb']} MB"
    )
    for threads, row in searched.items():
        print(
            f"{threads} thread{'s' if threads > 1 else ''}: recall@10 {row['recall']:.4f} ({row['raw_recall']:.4f} "
            f"before exact scoring); one query {row['p50_ms']} ms (p50), {row['p95_ms']} ms (p95); "
            f"{row['batch_ms']} ms per query in a batch of {row['n_queries']}; {row['own_mb']} MB"
        )


def main() -> None:
    options = options_of()
    folder = folder_of(options)
    folder.mkdir(parents=True, exist_ok=True)
    if options.stage:
        content = run_stage(options.stage, options)
        partial = folder / f"{options.stage}.partial"
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.rename(folder / f"{options.stage}.json")
        return
    stored, _ = sets_of(options)
    vectors, built = (staged(stage, options, len(os.sched_getaffinity(0))) for stage in ("vectors", "build"))
    searched = {threads: staged(f"search-{threads}", options, threads) for threads in THREADS}
    show(vectors, built, searched)
    rows = [{"threads": threads, **row} for threads, row in searched.items()]
    _, source = real_texts(options.data)
    facts = {"model": Path(str(options.model)).name, "texts": source, "set": stored.facts()}
    write_result(f"index-{options.n}", {**facts, "vectors": vectors, "built": built, "rows": rows})


if __name__ == "__main__":
    main()
