"""An index of a million or of forty million vectors: time to build, size, memory, recall@10, milliseconds a query.

    python benchmarks/index.py --n 1000000 [--recall 0.98] [--max-memory 10] [--folder FOLDER]
    python benchmarks/index.py --n 40000000 --recall 0.9

The vectors are those of real texts, perturbed (``vector_sets.py``), made from a seed whenever they are read; queries
are texts that no stored vector is made of, perturbed alike. What a user would keep on the disk for exact scoring is
kept there in full: float32 up to five million, beyond that int8, a quarter of it. The truth is exact search over all
vectors in float32. ``choose_index`` chooses. Half of the queries tell how much effort the recall needs, the others
are measured. Every stage runs in a process of its own; what it has done is kept in the folder, and a run that was
stopped continues there.
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
    """What the command line says."""
    parser = arguments(__doc__)
    parser.set_defaults(model="twinvec-mini", rounds=5)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--texts", type=int, help="real texts to embed (default: all there are)")
    parser.add_argument("--noise", type=float, default=0.5, help="length of the noise beside a vector's 1")
    parser.add_argument("--noise-shape", choices=["real", "even"], default="real")
    parser.add_argument("--stored", choices=["float32", "float16", "int8"], help="what exact scoring reads")
    parser.add_argument("--recall", type=float, default=0.98, help="recall@10 to reach")
    parser.add_argument("--max-memory", type=float, default=10, help="of the index, in GB")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "twinvec-benchmark")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.stored = options.stored or ("float32" if options.n <= MOST_FLOAT32 else "int8")
    return options


def place_of(options: argparse.Namespace) -> Path:
    """The folder of this very set of vectors."""
    name = f"{Path(str(options.model)).name}-{options.n}-{options.noise}-{options.noise_shape}-{options.stored}"
    return Path(options.folder) / name


def sets_of(options: argparse.Namespace) -> tuple[Perturbed, Vectors]:
    """The stored vectors, and the queries ``(N_QUERIES, width)``."""
    texts, _ = real_texts(options.data)
    real = np.array(real_vectors(texts[: options.texts], str(options.model), options.folder))
    stored = Perturbed(real[:-HELD_OUT], options.n, options.noise, options.noise_shape)
    return stored, Perturbed(real[-HELD_OUT:], N_QUERIES, options.noise, options.noise_shape, seed=1)[:]


def run_stage(stage: str, options: argparse.Namespace) -> dict[str, Any]:
    """One stage, in this process."""
    place = place_of(options)
    if stage.startswith("search"):  # without the real vectors, so that the memory is that of a search
        return measure(place, options.stored, recall=options.recall, rounds=options.rounds)
    stored, queries = sets_of(options)
    if stage == "build":
        return build(stored, place, int(options.max_memory * 1e9))
    return make_vectors(stored, queries, place, options.stored)


def staged(stage: str, options: argparse.Namespace, threads: int) -> dict[str, Any]:
    """What a stage says that runs in a process of its own, on some of the cores; kept for the next time."""
    kept = place_of(options) / f"{stage}.json"
    if not kept.exists():
        print(f"stage {stage}", file=sys.stderr, flush=True)
        cores = sorted(os.sched_getaffinity(0))[:threads]
        command = [sys.executable, __file__, *sys.argv[1:], "--stage", stage]
        environment = {**os.environ, **dict.fromkeys(LIBRARIES, str(threads))}
        os.sched_setaffinity(0, cores)  # the process inherits it
        try:
            subprocess.run(command, env=environment, check=True)
        finally:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
    content: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return content


def show(vectors: dict[str, Any], built: dict[str, Any], searched: dict[int, dict[str, Any]]) -> None:
    """Print all of it."""
    print(f"\n{built['words']}")
    print(
        f"built in {built['seconds']} s (of which {built['train_seconds']} s to learn from a sample), "
        f"{show_size(built['index_bytes'])} on the disk beside {show_size(vectors['stored_bytes'])} "
        f"of {vectors['stored']} vectors, peak {built['peak_mb']} MB"
    )
    for threads, row in searched.items():
        print(
            f"{threads} thread{'s' if threads > 1 else ''}: recall@10 {row['recall']:.4f} ({row['raw_recall']:.4f} "
            f"before exact scoring); one query {row['p50_ms']} ms (p50), {row['p95_ms']} ms (p95); "
            f"{row['batch_ms']} ms each of {row['n_queries']} at once; {row['own_mb']} MB"
        )


def main() -> None:
    """Measure, print, write."""
    options = options_of()
    place = place_of(options)
    place.mkdir(parents=True, exist_ok=True)
    if options.stage:
        content = run_stage(options.stage, options)
        partial = place / f"{options.stage}.partial"
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.rename(place / f"{options.stage}.json")
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
