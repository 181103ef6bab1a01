"""Renders the result of each benchmark as Markdown."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from result_markdown import cells, show_time, table, where


def train(result: dict[str, Any]) -> str:
    """Training speed and loss curves."""
    rows = [
        [*row, " ".join(f"{loss:.2f}" for loss in each["losses"])]
        for row, each in zip(
            cells(result["rows"], {"name": "", "pairs_per_second": ".0f", "ratio": ".2f"}), result["rows"], strict=True
        )
    ]
    header = [
        f"{result['model']}, {result['n_pairs']:,} SNLI pairs, batch {result['batch']}",
        "pairs per second",
        "ratio",
        f"loss, mean over every {result['steps_per_loss']} steps",
    ]
    return f"{table(header, rows)}\n\n{where(result)}"


def encode(result: dict[str, Any]) -> str:
    """Speed and fidelity of each contender."""
    formats = {"name": "", "sentences_per_second": ".0f", "ratio": ".2f", "mean_cosine": ".5f", "min_cosine": ".5f"}
    header = [
        f"{result['model']}, {result['n_texts']:,} sentences",
        "per second",
        "ratio",
        "mean cosine",
        "lowest cosine",
    ]
    return "\n\n".join([table(header, cells(result["rows"], formats)), *_rival_settings(result), where(result)])


def _rival_settings(result: dict[str, Any]) -> list[str]:
    """The batch size of each rival, and the rivals that did not run."""
    sizes = [str(row["batch_size"]) for row in result["rows"] if row.get("batch_size")]
    if not sizes:  # the rivals ran with their defaults
        return []
    failed = "".join(f" {name} did not run." for name in result["did_not_run"])
    return [
        "Each row of sentence-transformers ran at its fastest batch size "
        f"({', '.join(sizes)}, from top to bottom).{failed}"
    ]


def start(result: dict[str, Any]) -> str:
    """Start-up time and memory of a new process."""
    formats = {"name": "", "seconds": ".2f", "ratio": ".1f", "peak_mb": "", "memory_share": ".2f"}
    header = ["from import to the first vector", "seconds", "times faster", "peak MB", "share of memory"]
    return f"{table(header, cells(result['rows'], formats))}\n\n{where(result)}"


def serve(result: dict[str, Any]) -> str:
    """The server compared with local encoding and with a rival, and its memory over many requests."""
    formats = {
        "name": "",
        "local_per_s": ".0f",
        "served_per_s": ".0f",
        "share": ".0%",
        "p50_ms": ".0f",
        "p99_ms": ".0f",
        "one_local_ms": ".1f",
        "one_served_ms": ".1f",
        "one_ratio": ".2f",
    }
    header = [
        f"{result['model']}, {result['clients']} clients, one text per request",
        "`encode`, texts per second",
        "served per second",
        "share",
        "p50 ms",
        "p99 ms",
        "one text, `encode`, ms",
        "one client, p50 ms",
        "ratio",
    ]
    rows = [{"name": name, **result[name]} for name in ("float32", "int8") if name in result]
    parts = [table(header, cells(rows, formats))]
    if "rival" in result:
        found = [{"name": name, **row} for name, row in result["rival"]["rows"].items()]
        names = [f"{result['model']}, {result['clients']} clients", "requests per second", "p50 ms", "p99 ms"]
        parts.append(table(names, cells(found, {"name": "", "per_s": ".0f", "p50_ms": ".0f", "p99_ms": ".0f"})))
        parts.append(f"Compared with the faster rival: {result['rival']['ratio']:.1f} times the requests per second.")
    if "soak" in result:
        soak = result["soak"]
        parts.append(
            f"Memory after {soak['requests']:,} requests (twinvec-mini, int8): {soak['memory_mb'][-1]:.0f} MB, "
            f"{soak['growth']:+.1%} compared with the state after a fifth of them."
        )
    return "\n\n".join([*parts, where(result)])


def memory(result: dict[str, Any]) -> str:
    """Peak memory over a long stream of texts."""
    return (
        f"`encode_iter` over {result['n_texts']:,} texts used at most {result['peak_mb']} MB "
        f"and took {result['seconds']:,} seconds.\n\n{where(result)}"
    )


def limits(result: dict[str, Any]) -> str:
    """How close the encoder is to the speed of the matrix products alone, and where the rest of its time goes."""
    names = [f"{row['model']} {row['precision']}" for row in result["rows"]]
    formats = {
        "products_gflops_all_cores": ".0f",
        "limit_texts_per_second": "",
        "texts_per_second": "",
        "share_of_limit": ".0%",
    }
    rows = [[name, *row] for name, row in zip(names, cells(result["rows"], formats), strict=True)]
    header = ["model", "matrix products, Gflop/s", "limit, texts/s", "measured, texts/s", "share"]
    shares = [row["shares"] for row in result["rows"]]
    kinds = [[kind, *(f"{each[kind]:.1%}" for each in shares)] for kind in shares[0]]
    caption = "How one core spends its time on a batch of texts of mean length, by onnxruntime's profiler:"
    return "\n\n".join([table(header, rows), caption, table(["share of time", *names], kinds), where(result)])


def static(result: dict[str, Any]) -> str:
    """Speed of a static model, on known and on new words."""
    formats = {"name": "", "sentences_per_second": ",.0f", "ratio": ".1f", "mean_cosine": ".5f"}
    header = [f"{result['model']} compared with {result['rival']}", "texts per second", "ratio", "mean cosine"]
    return f"{table(header, cells(result['rows'], formats))}\n\n{where(result)}"


def wk(result: dict[str, Any]) -> str:
    """The cost of SBERT-WK, and the gain of one Gram matrix per token over a QR decomposition per window."""
    formats = {
        "model": "",
        "mean_per_second": ".0f",
        "wk_per_second": ".0f",
        "cost": ".2f",
        "qr_ms": ".0f",
        "gram_ms": ".1f",
    } | {"times_faster": ".0f"}
    speeds = ["mean pooling, texts/s", "SBERT-WK, texts/s", "cost"]
    header = [f"{result['n_texts']:,} sentences", *speeds, "QR, ms per batch", "ours, ms per batch", "times faster"]
    return f"{table(header, cells(result['rows'], formats))}\n\n{where(result)}"


def cranfield(result: dict[str, Any]) -> str:
    """Retrieval by meaning, by words, and by both."""
    rows = [[row["mode"], f"{row['ndcg']:.2f}", f"{row['low']:.2f} to {row['high']:.2f}"] for row in result["rows"]]
    return f"{table([result['model'], 'nDCG@10', '95% interval'], rows)}\n\n{where(result)}"


def demo(result: dict[str, Any]) -> str:
    """The demo compared with the same job in sentence-transformers."""
    rows = [
        [row["name"], f"{row['seconds']:.1f}", f"{row['ratio']:.2f}", f"{100 * row['shown']:.0f}%"]
        for row in result["rows"]
    ]
    same = f"{100 * result['rows'][0]['shown_by_same_model']:.0f}%"
    header = ["command", "seconds", "ratio", "same sentences as the first row"]
    words = (
        f"Different models find different pairs. With {result['model']}, `twinvec demo` prints {same} of the "
        "sentences that sentence-transformers prints."
    )
    return f"{table(header, rows)}\n\n{words} {where(result)}"


def headline(result: dict[str, Any]) -> str:
    """The time of the demo compared with BERT and SBERT on a GPU (Reimers and Gurevych, 2019)."""
    seconds = {row["name"]: row["seconds"] for row in result["rows"]}
    full = {"minilm": "all-MiniLM-L6-v2"}.get(result["model"], result["model"])
    steps = result["steps"]
    job = steps["embedding_s"] + steps["comparing_s"]
    return (
        "Finding the most similar pair among 10,000 sentences takes BERT about 65 hours and SBERT about 5 seconds on a "
        "V100 GPU ([Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084)). **Twinvec takes about "
        f"{job:.1f} seconds on {result['machine']['cores']} CPU cores**: {steps['embedding_s']:.1f} s to embed the "
        f"sentences, {steps['comparing_s']:.1f} s to compare all 49,995,000 pairs exactly.\n\n"
        "The model is twinvec-mini, which is smaller than BERT, in int8. The whole `twinvec demo` command, which also "
        f"collects the sentences, loads the model and answers three questions, takes {seconds['twinvec demo']:.1f} s; "
        f"the same job with sentence-transformers and {full} takes {result['rows'][0]['seconds']:.0f} s on "
        f"the same machine. All figures are medians of {result['rounds']} runs. {where(result)}"
    )


def search(result: dict[str, Any]) -> str:
    """Exact search, pairs and communities compared with the rivals."""
    rows = [
        [
            row["task"],
            row["name"],
            f"{row['seconds']:.3f}",
            f"{row['ratio']:.2f}" if "ratio" in row else "",
            f"{row['good']:.4f}" if "good" in row else "",
            f"{row['same']:.4f}" if "same" in row else f"peak {row['peak_mb']:,} MB",
        ]
        for row in result["rows"]
    ]
    header = [f"{result['threads']} threads, width 384", "", "seconds", "ratio", "as good", "identical"]
    return f"{table(header, rows)}\n\n{where(result)}"


def _kind_of_index(settings: dict[str, Any]) -> str:
    cells = f"made of {settings['n_cells']:,} cells (IVF)"
    return {
        "hnsw": f"a graph (HNSW) with {settings['n_links']} links per vector",
        "ivf-sq8": f"{cells} and stores one byte per value (SQ8)",
        "ivf-pq": f"{cells} and stores {settings['code_bytes']} bytes per vector (PQ)",
    }[settings["kind"]]


def index(result: dict[str, Any]) -> str:
    """An index of many vectors: its construction, size, recall and speed."""
    vectors, built = result["vectors"], result["built"]
    formats = {"threads": "", "effort": "", "recall": ".4f", "raw_recall": ".4f", "p50_ms": ".2f", "p95_ms": ".2f"}
    formats |= {"first_p50_ms": ".2f", "batch_ms": ".2f", "own_mb": ",.0f"}
    times = ["single query, ms (p50)", "p95", "first run (p50)", "per query in a batch, ms"]
    header = ["threads", "effort", "recall@10", "before re-scoring", *times, "MB"]
    sizes = f"{built['index_bytes'] / 1e9:.2f} GB, plus {vectors['stored_bytes'] / 1e9:.2f} GB of {vectors['stored']}"
    made, kind, opened = result["set"], _kind_of_index(built["settings"]), result["rows"][0]["tried"][0]
    words = (
        f"{made['n_vectors']:,} vectors, generated by perturbing the vectors of {made['n_real']:,} real texts. "
        f"The index is {kind}. Building it took {built['seconds']:,.0f} s and at most {built['peak_mb']:,} MB of "
        f"memory. On disk, the index takes {sizes} vectors. "
        "The search effort was tuned on half of the queries to reach the requested recall; the table shows the results "
        "of the other half. The first queries after opening the index took a median of "
        f"{opened['p50_ms']:.1f} ms (effort {opened['effort']}, one thread)."
    )
    return f"{words}\n\n{table(header, cells(result['rows'], formats))}\n\n{where(result)}"


def kill_bulk(result: dict[str, Any]) -> str:
    """Bulk jobs that were killed and continued."""
    at = result["shards_at_kills"]
    return (
        f"{result['kills']} kills of {result['jobs']} jobs with {result['n_rows']:,} rows each; at a kill, {min(at)} "
        f"to {max(at)} of {result['shards']} shards were on disk. Files that differ from those of an uninterrupted "
        f"job: {0 if result['same_bytes'] else 'some'}. Partial results that a reader saw: "
        f"{0 if result['readers_saw_whole_results'] else 'some'}.\n\n{where(result)}"
    )


def kill_collection(result: dict[str, Any]) -> str:
    """Collections whose writers were killed."""
    steps = ", ".join(f"{count:,} {step}" for step, count in result["steps_done"].items())
    return (
        f"{result['kills']} kills, {result['in_flight']} of them during a step; {result['in_flight_done']} of these "
        f"steps took effect completely. Acknowledged steps: {steps}. Kills that lost or duplicated a text: "
        f"{result['lost']}. Partial states seen in {result['reads']:,} reads: {len(result['faults'])}."
        f"\n\n{where(result)}"
    )


def kill_train(result: dict[str, Any]) -> str:
    """Training runs that were killed and continued."""
    at = result["steps_at_kills"]
    return (
        f"{result['kills']} kills of {result['runs']} runs of {result['n_steps']} steps each, at steps {min(at)} to "
        f"{max(at)}, with a checkpoint every {result['checkpoint_every']} steps. Models whose weights differ from "
        f"those of an uninterrupted run: {0 if result['same_weights'] else 'some'}. Logs with a missing step, a "
        f"repeated step or a different loss: {0 if result['same_log'] else 'some'}.\n\n{where(result)}"
    )


def pairs(result: dict[str, Any]) -> str:
    """Speed and fidelity of cross-encoders."""
    formats = {"name": "", "pairs_per_second": ",.0f", "ratio": ".2f", "rank_correlation": ".4f"}
    header = [f"{result['model']}, {result['n_pairs']:,} pairs", "pairs per second", "ratio", "rank correlation"]
    return "\n\n".join([table(header, cells(result["rows"], formats)), *_rival_settings(result), where(result)])


def best_pair(result: dict[str, Any]) -> str:
    """The time to find the most similar pair of some sentences."""
    sizes = list(result["best_pair"][0]["seconds"])
    rows = [
        [
            row["name"],
            *(f"{show_time(row['seconds'][n])}{'*' if int(n) in row['extrapolated'] else ''}" for n in sizes),
        ]
        for row in result["best_pair"]
    ]
    header = [f"most similar pair, {result['model']}", *(f"{int(n):,} sentences" for n in sizes)]
    words = "\\* Extrapolated from a sample. The SBERT paper has 65 hours for BERT and 5 seconds for SBERT on a V100."
    return f"{table(header, rows)}\n\n{words} {where(result)}"


def systems(result: dict[str, Any]) -> str:
    """Quality and time of every kind of system."""
    rows = [
        [
            row["name"],
            f"{row['stsb']:.1f}",
            f"{row['sts']:.1f}",
            f"{show_time(row['seconds'])}{'*' if row['is_extrapolated'] else ''}",
        ]
        for row in result["rows"]
    ]
    header = ["system", "STS benchmark", "mean of seven", f"best pair of {result['n_texts']:,}"]
    return f"{table(header, rows)}\n\n\\* Extrapolated from a sample. {where(result)}"


TASKS = {"stsb": "STS benchmark, Spearman", "ranking": "SNLI, entailed sentence among 20, MRR"}


def three_encoders(result: dict[str, Any]) -> str:
    """Test scores of the encoders that were trained from the same model: mean and deviation over the seeds."""
    rows = []
    for task, name in TASKS.items():
        for network in dict.fromkeys(row["network"] for row in result["rows"] if row["task"] == task):
            own = [row for row in result["rows"] if (row["task"], row["network"]) == (task, network)]
            tests = [row["test"] for row in own]
            spread = stdev(tests) if len(tests) > 1 else 0.0
            intervals = ", ".join(f"{row['low']:.1f} to {row['high']:.1f}" for row in own)
            rows.append([name, network, f"{mean(tests):.2f} ± {spread:.2f}", intervals])
    header = ["test set", f"from {result['start']}", "mean and deviation of the seeds", "95% interval of each seed"]
    return f"{table(header, rows)}\n\n{where(result)}"


def reranking(result: dict[str, Any]) -> str:
    """Retrieval before and after re-ranking."""
    rows = [[row["mode"], "", f"{row['ndcg']:.2f}", ""] for row in result["rows"]]
    for row in result["reranked"]:
        gain = f"{row['gain']:+.2f} ({row['gain_low']:+.2f} to {row['gain_high']:+.2f})"
        rows.append([row["mode"], row["scorer"], f"{row['ndcg']:.2f}", gain])
    header = ["first hits", "re-ranked by", "nDCG@10", "difference, 95% interval"]
    return f"{table(header, rows)}\n\n{where(result)}"


def sizing(result: dict[str, Any]) -> str:
    """What one server process on this machine answers, and the cores that a given load needs at this rate."""
    cores, rows = result["machine"]["cores"], []
    for precision in ("float32", "bfloat16", "int8"):
        if found := result.get(precision):
            per_core = found["served_per_s"] / cores
            times = [f"{found[name]:.0f} ms" for name in ("p50_ms", "p99_ms")]
            rows.append(
                [precision, f"{found['served_per_s']:,.0f}", f"{per_core:,.0f}", *times, f"{1000 / per_core:.1f}"]
            )
    header = [
        f"{result['model']}, {result['clients']} clients with one short text each",
        f"texts per second, {cores} cores",
        "per core",
        "half within",
        "99 % within",
        "cores for 1,000 per second",
    ]
    return f"{table(header, rows)}\n\n{where(result)}"
