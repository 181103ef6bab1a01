"""The stages of ``index.py``: write the vectors and the ground truth, build the index, search it."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import peak_mb
from vector_sets import Perturbed

from twinvec.search import (
    Hits,
    Index,
    choose_index,
    encode_codes,
    fill_index,
    load_index,
    new_index,
    save_index,
    search,
    search_index,
    top_k,
)
from twinvec.search.approximate import sample_rows, share_found
from twinvec.search.exact import Workers
from twinvec.search.index import sample_size
from twinvec.types import Array, Ids, Vectors

K = 10
BLOCK_ROWS = 65_536
STEPS_KEPT = 16  # blocks between two checkpoints
ROWS_SAVED = 5_000_000  # rows between two copies of a growing index
MOST_EFFORT = 2048
STORED, QUERIES, TRUTH, INDEX = "vectors.bin", "queries.npy", "truth.npz", "index"


def make_vectors(source: Perturbed, queries: Vectors, folder: Path, stored: str) -> dict[str, Any]:
    """Write all vectors in their stored type, and find the true nearest neighbors of the queries."""
    started, path = time.perf_counter(), folder / STORED
    np.save(folder / QUERIES, queries)
    done, truth = _resume(folder, len(queries))
    with path.open("r+b" if done else "wb") as file:
        file.truncate(done * source.shape[1] * np.dtype(stored).itemsize)
        file.seek(0, os.SEEK_END)
        for number, (start, block) in enumerate(source.blocks(BLOCK_ROWS, done)):
            as_stored(block, stored).tofile(file)
            truth = merged(truth, search(queries, block, k=K), start)
            if number % STEPS_KEPT == STEPS_KEPT - 1 or start + len(block) == len(source):
                file.flush()
                os.fsync(file.fileno())
                _checkpoint(folder, start + len(block), truth)
                _say("vectors", start + len(block), len(source), started, done)
    return {
        "stored": stored,
        "stored_bytes": path.stat().st_size,
        "seconds": round(time.perf_counter() - started, 1),
        "peak_mb": round(peak_mb()),
        "n_queries": len(queries),
        "true_cosine": {f"place {i}": round(float(truth.scores[:, i - 1].mean()), 4) for i in (1, K)},
    }


def as_stored(rows: Vectors, stored: str) -> Array:
    """Rows ``(n, width)`` in another type. int8 has one scale per row, which does not affect cosines."""
    if stored != "int8":
        return rows.astype(stored)
    with Workers() as workers:
        parts = workers.map(lambda part: encode_codes(rows[part], "int8").values, workers.split(len(rows)))
    return np.concatenate(parts)


def merged(best: Hits, new: Hits, start: int) -> Hits:
    """The best of the known hits and of those in a block whose first row is ``start``; ``(queries, k)``.

    >>> known, new = Hits(np.array([[7]]), np.float32([[0.5]])), Hits(np.array([[1]]), np.float32([[0.9]]))
    >>> merged(known, new, 100).ids.tolist()
    [[101]]
    """
    ids = np.concatenate([best.ids, new.ids + start], axis=1)
    found = top_k(np.concatenate([best.scores, new.scores], axis=1), K)
    return Hits(np.take_along_axis(ids, found.ids, axis=1), found.scores)


def build(source: Perturbed, folder: Path, max_memory: int) -> dict[str, Any]:
    """Build the index that ``choose_index`` chooses; it is saved regularly, and continued if stopped."""
    started, source_mb = time.perf_counter(), peak_mb()
    settings = choose_index(len(source), source.shape[1], max_memory)
    print(settings.describe(), file=sys.stderr, flush=True)
    times = {"train_seconds": 0.0, "seconds": 0.0}
    if (folder / INDEX).exists():
        index = load_index(folder / INDEX)
        times = json.loads((folder / "times.json").read_text(encoding="utf-8"))
    else:
        index = new_index(settings, source.shape[1])
        if not index.is_trained:
            index.train(sample_rows(source, sample_size(settings, len(source))))
        times["train_seconds"] = round(time.perf_counter() - started, 1)
    before, n_before, saving = times["seconds"], len(index), 0.0
    filling = time.perf_counter()
    while len(index) < len(source):
        stop = min(len(index) + ROWS_SAVED, len(source))
        for until in range(len(index) + BLOCK_ROWS, stop + BLOCK_ROWS, BLOCK_ROWS):
            fill_index(index, source, stop=min(until, stop), progress=False)
            _say("indexing", len(index), len(source), filling, n_before)
        saved = time.perf_counter()
        save_index(index, folder / INDEX, replace=True)
        saving += time.perf_counter() - saved
        times["seconds"] = round(before + time.perf_counter() - started - saving, 1)
        (folder / "times.json").write_text(json.dumps(times), encoding="utf-8")
    return {
        "settings": asdict(index.settings),
        "words": index.settings.describe(),
        **times,
        "index_bytes": sum(file.stat().st_size for file in (folder / INDEX).iterdir()),
        "peak_mb": round(peak_mb()),
        "of_which_source_mb": round(source_mb),
        "in_one_go": n_before == 0,
    }


def measure(folder: Path, stored: str, *, recall: float, rounds: int) -> dict[str, Any]:
    """Raise the effort until half of the queries reach the recall; then measure the other half."""
    index = load_index(folder / INDEX)
    vectors: Array = np.memmap(folder / STORED, dtype=stored, mode="r", shape=(len(index), index.width))
    truth, queries = np.load(folder / TRUTH)["ids"], np.load(folder / QUERIES)
    half = len(queries) // 2
    tried = tune(index, queries[:half], vectors, truth[:half], recall=recall)
    measured, exact = queries[half:], truth[half:]
    first = [timed(index, query, vectors)[1] for query in measured]
    every = np.array([[timed(index, query, vectors)[1] for query in measured] for _ in range(rounds)])
    together = sorted(timed(index, measured, vectors)[1] for _ in range(rounds))[rounds // 2]
    found, _ = timed(index, measured, vectors)
    return {
        "effort": index.settings.effort,
        "oversample": index.settings.oversample,
        "n_queries": len(measured),
        "recall": round(share_found(found.ids, exact), 4),
        "raw_recall": round(share_found(index.search(measured, K).ids, exact), 4),
        "p50_ms": round(float(np.median(np.percentile(every, 50, axis=1))), 3),
        "p95_ms": round(float(np.median(np.percentile(every, 95, axis=1))), 3),
        "first_p50_ms": round(float(np.percentile(first, 50)), 3),
        "first_p95_ms": round(float(np.percentile(first, 95)), 3),
        "batch_ms": round(together / len(measured), 3),
        "rounds": rounds,
        "own_mb": round(own_mb()),
        "peak_mb": round(peak_mb()),
        "tried": tried,
    }


def tune(index: Index, queries: Vectors, vectors: Array, truth: Ids, *, recall: float) -> list[dict[str, Any]]:
    """Raise the effort of the index by half until it reaches the recall; returns all attempts with their times."""
    tried: list[dict[str, Any]] = []
    while True:
        runs = [timed(index, query, vectors) for query in queries]
        found = np.concatenate([hits.ids for hits, _ in runs])
        reached = share_found(found, truth)
        tried.append(
            {
                "effort": index.settings.effort,
                "recall": round(reached, 4),
                "p50_ms": round(float(np.median([took for _, took in runs])), 3),
            }
        )
        print(tried[-1], file=sys.stderr, flush=True)
        if reached >= recall or index.settings.effort >= MOST_EFFORT:
            return tried
        index.settings = replace(index.settings, effort=index.settings.effort * 3 // 2)


def timed(index: Index, queries: Vectors, vectors: Array) -> tuple[Hits, float]:
    """The exactly scored hits, and the time in milliseconds."""
    started = time.perf_counter()
    hits = search_index(index, queries, k=K, vectors=vectors)
    return hits, 1000 * (time.perf_counter() - started)


def own_mb() -> float:
    """Anonymous memory of this process: without pages of mapped files, which the system may drop."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def _resume(folder: Path, n_queries: int) -> tuple[int, Hits]:
    """The number of vectors already written, and the nearest neighbors among them."""
    if not (folder / TRUTH).exists():
        return 0, Hits(np.empty((n_queries, 0), dtype=np.int64), np.empty((n_queries, 0), dtype=np.float32))
    kept = np.load(folder / TRUTH)
    return int(kept["done"]), Hits(kept["ids"], kept["scores"])


def _checkpoint(folder: Path, done: int, truth: Hits) -> None:
    partial = folder / "truth.partial.npz"
    np.savez(partial, done=done, ids=truth.ids, scores=truth.scores)
    partial.rename(folder / TRUTH)


def _say(what: str, done: int, total: int, started: float, before: int) -> None:
    took = time.perf_counter() - started
    left = took / max(done - before, 1) * (total - done)
    print(f"{what}: {done:>12,} of {total:,}, {took:8.0f} s, {left:8.0f} s left", file=sys.stderr, flush=True)
