"""Exact search, pairs and communities: ours beside sentence-transformers' util, FAISS flat and usearch.

    python benchmarks/search.py [--data FOLDER] [--rounds 7] [--large-rounds 3] [--large 1000000] [--communities 200000]

All run in this process on the same vectors in float32, warm, with the same number of threads, in alternation; the
seconds are medians. Ours gets plain arrays and checks and normalises them each time; FAISS gets its index filled and
the rivals get their vectors at length 1, both before the clock starts. Beside every time stands what was found: the
share of the reference's answers that is among the contender's. The large set is made by perturbing real vectors.
Communities of many are found in a process of their own, whose peak memory is told.
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
from typing import Any

import numpy as np
from common import alternate, arguments, peak_mb, sts_sentences, write_result
from vector_sets import HELD_OUT, Perturbed, real_texts, real_vectors

from twinvec.cluster import Communities, CommunitySettings
from twinvec.search import most_similar_pairs, search
from twinvec.types import Array, Ids, Vectors

N_TEXTS, N_QUERIES, N_PAIRS, K = 10_000, 1_000, 500_000, 10
THRESHOLD, MIN_SIZE = 0.75, 10  # sentence-transformers' own
OURS, RIVAL, FAISS, USEARCH = "twinvec", "sentence-transformers", "FAISS flat", "usearch exact"

Row = dict[str, Any]
Run = Callable[[], Any]


def compare(
    task: str, runs: Mapping[str, Run], rounds: int, *, against: str, found: Callable[[str], float]
) -> list[Row]:
    """Seconds, how many times as fast as ``against``, and the fidelity that ``found`` tells, of each contender."""
    seconds = alternate(runs, rounds)
    rows = [
        {
            "task": task,
            "name": name,
            "seconds": round(seconds[name], 4),
            "ratio": round(seconds[against] / seconds[name], 2),
            "found": round(found(name), 6),
            "rounds": rounds,
        }
        for name in runs
    ]
    for row in rows:
        print(
            f"{task:44}{row['name']:28}{row['seconds']:>10.3f} s{row['ratio']:>8.2f}{row['found']:>10.5f}", flush=True
        )
    return rows


def pair_rows(vectors: Vectors, k: int, rounds: int) -> list[Row]:
    """The best ``k`` pairs of all. ``found`` is the share of the true best, which float64 tells."""
    import torch
    from sentence_transformers.util import paraphrase_mining_embeddings

    tensor = torch.from_numpy(vectors)
    exact = true_pairs(vectors, k)
    per_text = min(100, k)  # its default is 100: with fewer places than that there are no more to fill

    def keys(left: Array, right: Array) -> Ids:
        both = np.sort(np.stack([left, right]), axis=0)
        return np.asarray(both[0] * len(vectors) + both[1], dtype=np.int64)

    def mined() -> list[list[float]]:
        return paraphrase_mining_embeddings(tensor, max_pairs=k, top_k=per_text)  # type: ignore[no-any-return]

    def found(name: str) -> float:
        if name == OURS:
            pairs = most_similar_pairs(vectors, k)
            return share(keys(pairs.left, pairs.right), exact)
        both = np.array([[i, j] for _, i, j in mined()[:k]], dtype=np.int64)
        return share(keys(both[:, 0], both[:, 1]), exact)

    runs: dict[str, Run] = {OURS: lambda: most_similar_pairs(vectors, k), f"{RIVAL} paraphrase_mining": mined}
    task = f"best {k:,} of all pairs of {len(vectors):,}"
    return compare(task, runs, rounds, against=f"{RIVAL} paraphrase_mining", found=found)


def true_pairs(vectors: Vectors, k: int) -> Ids:
    """Keys ``left * n + right`` of the best ``k`` pairs, by all cosines in float64, in blocks of rows."""
    n, rows = len(vectors), vectors.astype(np.float64)
    keys, scores = np.empty(0, np.int64), np.empty(0)
    for start in range(0, n, 1000):
        block = rows[start : start + 1000] @ rows[start:].T
        block[np.tri(*block.shape, dtype=bool)] = -np.inf
        best = np.argpartition(-block.ravel(), min(k, block.size - 1))[:k]
        left, right = np.divmod(best, block.shape[1])
        keys = np.concatenate([keys, (left + start) * n + right + start])
        scores = np.concatenate([scores, block.ravel()[best]])
        kept = np.argsort(-scores, kind="stable")[:k]
        keys, scores = keys[kept], scores[kept]
    return keys


def share(found: Ids, exact: Ids) -> float:
    """The share of ``exact`` that was found."""
    return len(np.intersect1d(found, exact)) / len(exact)


def search_rows(queries: Vectors, vectors: Vectors, rounds: int, threads: int) -> list[Row]:
    """The nearest ten of each query. ``found`` is the share of FAISS's ids that stand in the same place."""
    import faiss
    import torch
    from sentence_transformers.util import semantic_search
    from usearch.index import MetricKind
    from usearch.index import search as usearch_search

    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    asked, stored = torch.from_numpy(queries), torch.from_numpy(vectors)
    runs: dict[str, Run] = {
        OURS: lambda: search(queries, vectors, k=K).ids,
        FAISS: lambda: flat.search(queries, K)[1],
        f"{RIVAL} semantic_search": lambda: [
            [hit["corpus_id"] for hit in hits] for hits in semantic_search(asked, stored, top_k=K)
        ],
        USEARCH: lambda: usearch_search(vectors, queries, K, MetricKind.IP, exact=True, threads=threads).keys,
    }
    last: dict[str, Array] = {}

    def remembered(name: str) -> Run:
        def run() -> None:
            last[name] = runs[name]()

        return run

    def found(name: str) -> float:
        return float((np.asarray(last[name], dtype=np.int64) == last[FAISS]).mean())

    task = f"top {K} of {len(queries):,} queries in {len(vectors):,}"
    return compare(task, {name: remembered(name) for name in runs}, rounds, against=FAISS, found=found)


def community_rows(vectors: Vectors, rounds: int) -> list[Row]:
    """Communities; ``found`` is the share of sentence-transformers' that ours finds with just the same members."""
    import torch
    from sentence_transformers.util import community_detection

    tensor = torch.from_numpy(vectors)
    settings = CommunitySettings(THRESHOLD, MIN_SIZE)

    def detected() -> list[list[int]]:
        return community_detection(tensor, threshold=THRESHOLD, min_community_size=MIN_SIZE)  # type: ignore[no-any-return]

    theirs = {frozenset(members) for members in detected()}

    def found(name: str) -> float:
        ours = Communities(settings).fit(vectors).communities_ if name == OURS else detected()
        return len(theirs & {frozenset(map(int, members)) for members in ours}) / max(len(theirs), 1)

    against = f"{RIVAL} community_detection"
    runs: dict[str, Run] = {OURS: lambda: Communities(settings).fit(vectors), against: detected}
    rows = compare(f"communities of {len(vectors):,}", runs, rounds, against=against, found=found)
    return [{**row, "n_communities": len(theirs)} for row in rows]


def many_communities(path: Path, count: int) -> Row:
    """What ``print_communities`` says in a process of its own."""
    command = [sys.executable, __file__, "--only-communities", str(path), "--communities", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    print(f"communities of {count:,}: {row['seconds']} s, peak {row['peak_mb']} MB, {row['n_communities']} found")
    return row


def print_communities(path: Path, count: int) -> None:
    """Find the communities of the vectors in a file, mapped; print seconds and peak memory as JSON."""
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
    """Let all contenders have the same number of threads."""
    import faiss
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)
    torch.set_num_threads(count)
    faiss.omp_set_num_threads(count)


def options_of() -> argparse.Namespace:
    """What the command line says."""
    parser = arguments(__doc__)
    parser.set_defaults(model="twinvec-mini")
    parser.add_argument("--texts", type=int, default=N_TEXTS)
    parser.add_argument("--large", type=int, default=1_000_000, help="vectors of the large search; 0: none")
    parser.add_argument("--large-rounds", type=int, default=3, help="of the large search, which takes long")
    parser.add_argument("--communities", type=int, default=200_000, help="vectors of the large clustering; 0: none")
    parser.add_argument("--real-texts", type=int, help="real texts for both of these (default: all there are)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "twinvec-benchmark")
    parser.add_argument("--only-communities", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, write."""
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
    print(f"{'':72}{'seconds':>12}{'ratio':>8}{'found':>10}")
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
        asked = Perturbed(np.array(real[-HELD_OUT:]), N_QUERIES, seed=1)[:]
        rows += search_rows(asked, made[:], options.large_rounds, options.threads)
    write_result("search", {**facts, "rows": rows})


if __name__ == "__main__":
    main()
