"""How each benchmark's result is shown."""

from __future__ import annotations

from typing import Any

from result_markdown import table, where


def train(result: dict[str, Any]) -> str:
    """Pairs a second and the loss curves."""
    rows = [
        [
            row["name"],
            f"{row['pairs_per_second']:.0f}",
            f"{row['ratio']:.2f}",
            " ".join(f"{x:.2f}" for x in row["losses"]),
        ]
        for row in result["rows"]
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
    rows = [
        [
            row["name"],
            f"{row['sentences_per_second']:.0f}",
            f"{row['ratio']:.2f}",
            f"{row['mean_cosine']:.5f}",
            f"{row['min_cosine']:.5f}",
        ]
        for row in result["rows"]
    ]
    header = [f"{result['model']}, {result['n_texts']:,} sentences", "a second", "ratio", "mean cosine", "lowest"]
    return "\n\n".join([table(header, rows), *_rival_settings(result), where(result)])


def _rival_settings(result: dict[str, Any]) -> list[str]:
    """The batch size at which each rival ran, and which of them did not run."""
    sizes = [str(row["batch_size"]) for row in result["rows"] if row.get("batch_size")]
    if not sizes:  # an older result: the rivals ran with their defaults
        return []
    failed = "".join(f" {name} did not run." for name in result["did_not_run"])
    return [
        "Each row of sentence-transformers ran at the batch size that was fastest for it "
        f"({', '.join(sizes)}, from top to bottom).{failed}"
    ]


def start(result: dict[str, Any]) -> str:
    """Seconds and memory of a new process."""
    rows = [
        [
            row["name"],
            f"{row['seconds']:.2f}",
            f"{row['ratio']:.1f}x",
            str(row["peak_mb"]),
            f"{row['memory_share']:.2f}",
        ]
        for row in result["rows"]
    ]
    header = ["from import to the first vector", "seconds", "faster", "peak MB", "memory share"]
    return f"{table(header, rows)}\n\n{where(result)}"


def memory(result: dict[str, Any]) -> str:
    """Peak memory over a long stream of texts."""
    return (
        f"`encode_iter` over {result['n_texts']:,} texts held at most {result['peak_mb']} MB "
        f"({result['seconds']} seconds).\n\n{where(result)}"
    )


def limits(result: dict[str, Any]) -> str:
    """How near the bare matrix products the encoder runs, and what the rest of its time goes to."""
    rows = [
        [
            _model_at_precision(result, row),
            f"{row['products_gflops_all_cores']:.0f}",
            str(row["limit_texts_per_second"]),
            str(row["texts_per_second"]),
            f"{row['share_of_limit']:.0%}",
        ]
        for row in result["rows"]
    ]
    header = ["model", "products, Gflop/s", "their limit, texts/s", "reached", "share"]
    return "\n\n".join([table(header, rows), *_operator_shares(result), where(result)])


def _operator_shares(result: dict[str, Any]) -> list[str]:
    profiled = [row for row in result["rows"] if "shares" in row]  # older results have none by kind of work
    if not profiled:
        return []
    header = ["share of the time", *(_model_at_precision(result, row) for row in profiled)]
    rows = [[kind, *(f"{row['shares'][kind]:.1%}" for row in profiled)] for kind in profiled[0]["shares"]]
    words = "Where the time of one core goes, in a batch of texts of mean length (onnxruntime's profiler):"
    return [words, table(header, rows)]


def _model_at_precision(result: dict[str, Any], row: dict[str, Any]) -> str:
    return f"{row.get('model', result['model'])} {row['precision']}"


def static(result: dict[str, Any]) -> str:
    """Speed of a static model, with what its words being known is worth."""
    rows = [
        [
            row["name"],
            f"{row['sentences_per_second']:,.0f}",
            f"{row['ratio']:.1f}",
            "" if row["mean_cosine"] is None else f"{row['mean_cosine']:.5f}",
        ]
        for row in result["rows"]
    ]
    header = [f"{result['model']} beside {result['rival']}", "a second", "ratio", "mean cosine"]
    return f"{table(header, rows)}\n\n{where(result)}"


def wk(result: dict[str, Any]) -> str:
    """What SBERT-WK costs, and what its form with one small matrix a token gains over a QR for every window."""
    rows = [
        [
            row["model"],
            f"{row['mean_per_second']:.0f}",
            f"{row['wk_per_second']:.0f}",
            f"{row['cost']:.2f}",
            f"{row['qr_ms']:.0f}",
            f"{row['gram_ms']:.1f}",
            f"{row['times_faster']:.0f}",
        ]
        for row in result["rows"]
    ]
    speeds = ["texts a second, mean", "SBERT-WK", "cost"]
    header = [f"{result['n_texts']:,} sentences", *speeds, "QR of some, ms", "ours, ms", "times faster"]
    return f"{table(header, rows)}\n\n{where(result)}"


def cranfield(result: dict[str, Any]) -> str:
    """Retrieval by meaning, by words, and by both."""
    rows = [[row["mode"], f"{row['ndcg']:.2f}", f"{row['low']:.2f} to {row['high']:.2f}"] for row in result["rows"]]
    return f"{table([result['model'], 'nDCG@10', '95 % interval'], rows)}\n\n{where(result)}"


def demo(result: dict[str, Any]) -> str:
    """The whole demo beside the same job by the rival."""
    rows = [
        [row["name"], f"{row['seconds']:.1f}", f"{row['ratio']:.2f}", f"{100 * row['shown']:.0f} %"]
        for row in result["rows"]
    ]
    same = f"{100 * result['rows'][0]['shown_by_same_model']:.0f} % of the same sentences."
    header = ["whole process", "seconds", "ratio", "shared with the first row"]
    words = f"The models find different pairs. Run with {result['model']}, our demo shows {same}"
    return f"{table(header, rows)}\n\n{words} {where(result)}"


def headline(result: dict[str, Any]) -> str:
    """The demo's time beside those of BERT and SBERT on a GPU, as Reimers and Gurevych (2019) give them."""
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
    """Exact search, pairs and communities beside the rivals."""
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
    header = [f"{result['threads']} threads, width 384", "", "seconds", "ratio", "as good", "the same"]
    return f"{table(header, rows)}\n\n{where(result)}"


def index(result: dict[str, Any]) -> str:
    """An index of many vectors: what it took to build, and how well and fast it finds."""
    vectors, built = result["vectors"], result["built"]
    rows = [
        [
            str(row["threads"]),
            str(row["effort"]),
            f"{row['recall']:.4f}",
            f"{row['raw_recall']:.4f}",
            f"{row['p50_ms']:.2f}",
            f"{row['p95_ms']:.2f}",
            f"{row['first_p50_ms']:.2f}",
            f"{row['batch_ms']:.2f}",
            f"{row['own_mb']:,}",
        ]
        for row in result["rows"]
    ]
    times = ["single query, ms (p50)", "p95", "its first run (p50)", "per query in a batch, ms"]
    header = ["threads", "effort", "recall@10", "before re-scoring", *times, "MB"]
    sizes = f"{built['index_bytes'] / 1e9:.2f} GB, plus {vectors['stored_bytes'] / 1e9:.2f} GB of {vectors['stored']}"
    made = result["set"]
    kind = built["words"].split(";")[0]
    opened = result["rows"][0]["tried"][0]
    words = (
        f"{made['n_vectors']:,} vectors, made by perturbing the vectors of {made['n_real']:,} real texts. "
        f"Index: {kind}. Building it took {built['seconds']:,.0f} s and at most {built['peak_mb']:,} MB. "
        f"It takes {sizes} vectors. "
        "Half of the queries served to raise the effort until the index reached the requested recall; the table shows "
        "the other half. The first queries after opening the index took a median of "
        f"{opened['p50_ms']:.1f} ms (effort {opened['effort']}, one thread)."
    )
    return f"{words}\n\n{table(header, rows)}\n\n{where(result)}"


def kill_bulk(result: dict[str, Any]) -> str:
    """What was left of bulk jobs that were killed."""
    at = result["shards_at_kills"]
    return (
        f"{result['kills']} kills of {result['jobs']} jobs with {result['n_rows']:,} rows each; {min(at)} to {max(at)} "
        f"of {result['shards']} shards were on disk at a kill. Files that differ from those of an uninterrupted job: "
        f"{0 if result['same_bytes'] else 'some'}. Partial results that a reader saw: "
        f"{0 if result['readers_saw_whole_results'] else 'some'}.\n\n{where(result)}"
    )


def kill_collection(result: dict[str, Any]) -> str:
    """What was left of collections whose writers were killed."""
    steps = ", ".join(f"{count:,} {step}" for step, count in result["steps_done"].items())
    return (
        f"{result['kills']} kills, {result['in_flight']} of them during a step; {result['in_flight_done']} of these "
        f"steps took effect completely. Acknowledged steps: {steps}. Kills that lost or duplicated a text: "
        f"{result['lost']}. Partial states seen in {result['reads']:,} reads: {len(result['faults'])}."
        f"\n\n{where(result)}"
    )


def kill_train(result: dict[str, Any]) -> str:
    """What became of training runs that were killed."""
    at = result["steps_at_kills"]
    return (
        f"{result['kills']} kills of {result['runs']} runs of {result['n_steps']} steps each, at steps {min(at)} to "
        f"{max(at)}, with a checkpoint every {result['checkpoint_every']} steps. Models whose weights differ from "
        f"those of an uninterrupted run: {0 if result['same_weights'] else 'some'}. Logs with a missing step, a "
        f"repeated step or a different loss: {0 if result['same_log'] else 'some'}.\n\n{where(result)}"
    )
