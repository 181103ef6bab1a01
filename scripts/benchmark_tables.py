"""Renders the result of each benchmark as Markdown."""

from __future__ import annotations

from typing import Any

from result_markdown import cells, table, where


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


def memory(result: dict[str, Any]) -> str:
    """Peak memory over a long stream of texts."""
    return (
        f"`encode_iter` over {result['n_texts']:,} texts used at most {result['peak_mb']} MB "
        f"and took {result['seconds']} seconds.\n\n{where(result)}"
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
    caption = "Where one core spends its time, in a batch of texts of mean length (onnxruntime's profiler):"
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
    return f"{table([result['model'], 'nDCG@10', '95 % interval'], rows)}\n\n{where(result)}"


def demo(result: dict[str, Any]) -> str:
    """The demo compared with the same job in sentence-transformers."""
    rows = [
        [row["name"], f"{row['seconds']:.1f}", f"{row['ratio']:.2f}", f"{100 * row['shown']:.0f} %"]
        for row in result["rows"]
    ]
    same = f"{100 * result['rows'][0]['shown_by_same_model']:.0f} %"
    header = ["command", "seconds", "ratio", "same sentences as the first row"]
    words = (
        f"Different models find different pairs. With {result['model']}, our demo prints {same} of the same sentences."
    )
    return f"{table(header, rows)}\n\n{words} {where(result)}"


def headline(result: dict[str, Any]) -> str:
    """The time of the demo compared with BERT and SBERT on a GPU (Reimers and Gurevych, 2019)."""
    seconds = {row["name"]: row["seconds"] for row in result["rows"]}
    return (
        "Finding the most similar pair among 10,000 sentences takes BERT about 65 hours and SBERT about 5 seconds on a "
        "V100 GPU ([Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084)). **Twinvec takes about "
        f"{seconds['twinvec demo']:.0f} seconds on {result['machine']['cores']} CPU cores.**\n\n"
        "This is the time of the whole `twinvec demo` command: collect the sentences, load the model, embed, compare "
        "all 49,995,000 pairs exactly, and answer three questions. The model is twinvec-mini, which is smaller than "
        f"BERT, in int8. The same job with sentence-transformers and {result['model']} takes "
        f"{result['rows'][0]['seconds']:.0f} seconds on the same machine. Both are medians of {result['rounds']} runs. "
        f"{where(result)}"
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


def index(result: dict[str, Any]) -> str:
    """An index of many vectors: its construction, size, recall and speed."""
    vectors, built = result["vectors"], result["built"]
    formats = {"threads": "", "effort": "", "recall": ".4f", "raw_recall": ".4f", "p50_ms": ".2f", "p95_ms": ".2f"}
    formats |= {"first_p50_ms": ".2f", "batch_ms": ".2f", "own_mb": ",.0f"}
    times = ["single query, ms (p50)", "p95", "first run (p50)", "per query in a batch, ms"]
    header = ["threads", "effort", "recall@10", "before re-scoring", *times, "MB"]
    sizes = f"{built['index_bytes'] / 1e9:.2f} GB, plus {vectors['stored_bytes'] / 1e9:.2f} GB of {vectors['stored']}"
    made, kind, opened = result["set"], built["words"].split(";")[0], result["rows"][0]["tried"][0]
    words = (
        f"{made['n_vectors']:,} vectors, generated by perturbing the vectors of {made['n_real']:,} real texts. "
        f"Index: {kind}. Building it took {built['seconds']:,.0f} s and at most {built['peak_mb']:,} MB of memory. "
        f"On disk it takes {sizes} vectors. "
        "Half of the queries set the effort that reaches the requested recall; the table shows the other half. "
        "The first queries after opening the index took a median of "
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
