"""Exact search, pairs and communities: Twinvec, sentence-transformers' util, FAISS flat and usearch.

    python benchmarks/search.py [--data FOLDER] [--rounds 7] [--large-rounds 3] [--large 1000000] [--communities 200000]

All run in this process on the same float32 vectors, after a warm-up, with the same number of threads, in alternation;
seconds are medians. Twinvec gets plain arrays and checks them each time; the FAISS index is filled before the clock
starts. "good" is the share of results whose cosine in float64 reaches that of the last reference result; "same" is the
share of identical results, which drops where scores are tied. For communities, "good" is the share with identical
members and "same" the share with the same center. The large set consists of perturbed real vectors. usearch is skipped
where it would have to store more than MAX_SCORES scores, as on the large set; the stored result of 2026-11-16 was
measured before this limit, so it has a row for it. The large communities run in their own process, to measure its peak
memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import alternate, arguments, peak_mb, sts_sentences, write_result
from vector_sets import HELD_OUT, Perturbed, real_texts, real_vectors

from twinvec.cluster import Communities, CommunitySettings
from twinvec.search import Pairs, most_similar_pairs, search
from twinvec.search.approximate import share_found
from twinvec.types import Array, Ids, Vectors

N_TEXTS, N_QUERIES, N_PAIRS, K = 10_000, 1_000, 500_000, 10
THRESHOLD, MIN_SIZE = 0.75, 10  # defaults of sentence-transformers
MAX_SCORES = 10**8  # for usearch, which stores 16 bytes per score: 16 GB and minutes for the large set
ROUNDING = 1e-6  # of float32; smaller differences are arbitrary
OURS, RIVAL, FAISS, USEARCH = "twinvec", "sentence-transformers", "FAISS flat", "usearch exact"

Row = dict[str, Any]
Run = Callable[[], Any]


class Fidelity(NamedTuple):
    """The share of results as good as the last reference result, and the share of identical ones."""

    good: float
    same: float


def compare(
    task: str, runs: Mapping[str, Run], rounds: int, *, against: str, score: Callable[[Any], Fidelity]
) -> list[Row]:
    """Seconds, speed relative to ``against``, and fidelity of each contender."""
    last: dict[str, Any] = {}

    def remembered(name: str) -> Run:
        def run() -> None:
            last[name] = runs[name]()

        return run

    seconds = alternate({name: remembered(name) for name in runs}, rounds)
    rows = []
    for name in runs:
        good, same = score(last[name])
        ratio = seconds[against] / seconds[name]
        print(f"{task:40}{name:23}{seconds[name]:>10.3f}{ratio:>8.2f}{good:>10.6f}{same:>10.6f}", flush=True)
        rows.append(
            {
                "task": task,
                "name": name,
                "seconds": round(seconds[name], 4),
                "ratio": round(ratio, 3),
                "good": round(good, 6),
                "same": round(same, 6),
                "rounds": rounds,
            }
        )
    return rows


def pair_rows(vectors: Vectors, k: int, rounds: int) -> list[Row]:
    """The best ``k`` pairs, compared with all cosines in float64. The rival looks at 100 neighbors of each text."""
    import torch
    from sentence_transformers.util import paraphrase_mining_embeddings

    tensor = torch.from_numpy(vectors)
    exact = true_pairs(vectors, k)
    last = cosines(vectors[exact // len(vectors)], vectors[exact % len(vectors)]).min()

    def fidelity(pairs: Any) -> Fidelity:  # noqa: ANN401 - ours or theirs
        both = pairs[:2] if isinstance(pairs, Pairs) else np.array([[i, j] for _, i, j in pairs], dtype=np.int64).T
        left, right = np.sort(np.stack(both)[:, :k], axis=0)
        keys = np.unique(left * len(vectors) + right)
        scores = cosines(vectors[keys // len(vectors)], vectors[keys % len(vectors)])
        return Fidelity(np.count_nonzero(scores >= last - ROUNDING) / k, len(np.intersect1d(keys, exact)) / k)

    runs: dict[str, Run] = {
        OURS: lambda: most_similar_pairs(vectors, k),
        RIVAL: lambda: paraphrase_mining_embeddings(tensor, max_pairs=k, top_k=min(100, k)),
    }
    return compare(
        f"best {'pair' if k == 1 else f'{k:,} pairs'} of {len(vectors):,}", runs, rounds, against=RIVAL, score=fidelity
    )


def cosines(left: Vectors, right: Vectors) -> Array:
    """Cosines of unit rows ``(n, width)`` in float64, computed in parts."""
    parts = range(0, max(len(left), 1), 10_000)
    scores = [
        np.einsum("ij,ij->i", left[i : i + 10_000].astype(np.float64), right[i : i + 10_000].astype(np.float64))
        for i in parts
    ]
    return np.concatenate(scores)


def true_pairs(vectors: Vectors, k: int) -> Ids:
    """Keys ``left * n + right`` of the best ``k`` pairs, from all cosines in float64, in blocks of rows."""
    n, rows = len(vectors), vectors.astype(np.float64)
    keys, scores = np.empty(0, np.int64), np.empty(0)
    for start in range(0, n, 1000):
        block = rows[start : start + 1000] @ rows[start:].T
        block[np.tri(*block.shape, dtype=np.bool_)] = -np.inf
        best = np.argpartition(-block.ravel(), min(k, block.size - 1))[:k]
        left, right = np.divmod(best, block.shape[1])
        keys = np.concatenate([keys, (left + start) * n + right + start])
        scores = np.concatenate([scores, block.ravel()[best]])
        kept = np.argsort(-scores, kind="stable")[:k]
        keys, scores = keys[kept], scores[kept]
    return keys


def search_rows(queries: Vectors, vectors: Vectors, rounds: int, threads: int) -> list[Row]:
    """The ten nearest neighbors of each query, compared with those of FAISS."""
    import faiss
    import torch
    from sentence_transformers.util import semantic_search
    from usearch.index import MetricKind
    from usearch.index import search as usearch_search

    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    left, right = torch.from_numpy(queries), torch.from_numpy(vectors)
    exact = flat.search(queries, K)[1]

    def scores(ids: Ids) -> Array:
        return cosines(np.repeat(queries, K, axis=0), vectors[ids.ravel()]).reshape(-1, K)

    last = scores(exact).min(axis=1)

    def fidelity(found: Any) -> Fidelity:  # noqa: ANN401 - arrays or lists
        ids = np.asarray(found, dtype=np.int64)
        is_good = scores(ids) >= last[:, None] - ROUNDING
        n_good = sum(len(np.unique(row[good])) for row, good in zip(ids, is_good, strict=True))
        return Fidelity(n_good / ids.size, share_found(ids, exact))

    runs: dict[str, Run] = {
        OURS: lambda: search(queries, vectors, k=K).ids,
        FAISS: lambda: flat.search(queries, K)[1],
        RIVAL: lambda: [[hit["corpus_id"] for hit in hits] for hits in semantic_search(left, right, top_k=K)],
    }
    if queries.shape[0] * vectors.shape[0] <= MAX_SCORES:
        runs[USEARCH] = lambda: usearch_search(vectors, queries, K, MetricKind.IP, exact=True, threads=threads).keys
    task = f"top {K} of {len(queries):,} in {len(vectors):,}"
    return compare(task, runs, rounds, against=FAISS, score=fidelity)


def community_rows(vectors: Vectors, rounds: int) -> list[Row]:
    """Communities, compared with those of sentence-transformers by members and by center."""
    import torch
    from sentence_transformers.util import community_detection

    tensor = torch.from_numpy(vectors)
    settings = CommunitySettings(THRESHOLD, MIN_SIZE)
    runs: dict[str, Run] = {
        OURS: lambda: Communities(settings).fit(vectors).communities_,
        RIVAL: lambda: community_detection(tensor, threshold=THRESHOLD, min_community_size=MIN_SIZE),
    }
    theirs = runs[RIVAL]()

    def fidelity(found: Any) -> Fidelity:  # noqa: ANN401 - arrays or lists
        sets, right = {frozenset(map(int, some)) for some in found}, {frozenset(some) for some in theirs}
        centers, true_centers = {int(some[0]) for some in found}, {some[0] for some in theirs}
        n = max(len(right), len(sets), 1)
        return Fidelity(len(sets & right) / n, len(centers & true_centers) / n)

    rows = compare(f"communities of {len(vectors):,}", runs, rounds, against=RIVAL, score=fidelity)
    return [{**row, "n_communities": len(theirs)} for row in rows]


def many_communities(path: Path, count: int) -> Row:
    """The output of ``print_communities`` in its own process."""
    command = [sys.executable, __file__, "--only-communities", str(path), "--communities", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    memory = f"peak {row['peak_mb']} MB ({row['peak_mb_before']} before)"
    print(f"communities of {count:,}: {row['seconds']} s, {memory}, {row['n_communities']} found", flush=True)
    return row


def print_communities(path: Path, count: int) -> None:
    """Find the communities of memory-mapped vectors; print seconds and peak memory as JSON."""
    vectors = np.load(path, mmap_mode="r")[:count]
    before = peak_mb()
    started = time.perf_counter()
    found = Communities(CommunitySettings(THRESHOLD, MIN_SIZE)).fit(vectors)
    row = {
        "task": f"communities of {len(vectors):,}",
        "name": OURS,
        "seconds": round(time.perf_counter() - started, 1),
        "peak_mb": round(peak_mb()),
        "peak_mb_before": round(before),
        "n_communities": found.n_clusters_,
        "largest": len(found.communities_[0]) if found.n_clusters_ else 0,
    }
    print(json.dumps(row))


def limit_threads(count: int) -> None:
    """Give all contenders the same number of threads."""
    import faiss
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)
    torch.set_num_threads(count)
    faiss.omp_set_num_threads(count)


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.set_defaults(model="twinvec-mini")
    parser.add_argument("--texts", type=int, default=N_TEXTS)
    parser.add_argument("--large", type=int, default=1_000_000, help="vectors of the large search; 0 skips it")
    parser.add_argument("--large-rounds", type=int, default=3, help="rounds of the large search")
    parser.add_argument("--communities", type=int, default=200_000, help="vectors of the large clustering; 0 skips it")
    parser.add_argument("--real-texts", type=int, help="real texts for the large search and clustering (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "twinvec-benchmark")
    parser.add_argument("--only-communities", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = options_of()
    if options.only_communities:
        print_communities(options.only_communities, options.communities)
        return
    limit_threads(options.threads)
    model, folder = str(options.model), options.folder
    texts, source = sts_sentences(options.data, options.texts + N_QUERIES)
    both = np.array(real_vectors(texts, model, folder / "sts"))
    vectors, queries = both[: options.texts].copy(), both[options.texts :].copy()
    facts: dict[str, Any] = {"model": Path(model).name, "texts": source, "threads": options.threads}
    print(f"{'':63}{'seconds':>10}{'ratio':>8}{'good':>10}{'same':>10}")
    rows = pair_rows(vectors, N_PAIRS, options.rounds) + pair_rows(vectors, 1, options.rounds)
    rows += search_rows(queries, vectors, options.rounds, options.threads)
    rows += community_rows(vectors, options.rounds)
    if options.large or options.communities:
        many, facts["large_texts"] = real_texts(options.data)
        many = many[: options.real_texts]
        real = real_vectors(many, model, folder)
        kept = real[:-HELD_OUT]
    if options.communities:
        rows.append(many_communities(folder / f"real-{Path(model).name}-{len(many)}.npy", options.communities))
    if options.large:
        made = Perturbed(np.array(kept), options.large)
        facts["large_set"] = made.facts()
        large_queries = Perturbed(np.array(real[-HELD_OUT:]), N_QUERIES, seed=1)[:]
        rows += search_rows(large_queries, made[:], options.large_rounds, options.threads)
    write_result("search", {**facts, "rows": rows})


if __name__ == "__main__":
    main()
