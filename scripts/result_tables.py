"""Put the newest benchmark results and the scores of our models into README and docs, between marks that name them.

    python scripts/result_tables.py [--check]

A place looks like ``<!-- results: encode -->`` ... ``<!-- end -->``. With --check nothing is written; the exit code
says whether a page is behind its results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
MODELS = ROOT / "docs/models"
LAB = ROOT / "docs/lab"
GROUPS = "function_words", "content_words"
CHANCE = 0.05
PLACE = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def newest(name: str) -> dict[str, Any]:
    """The latest result file of a benchmark, as dates sort as text; or the file of that name beside models or plots."""
    for folder in (MODELS, LAB):
        if (folder / f"{name}.json").is_file():
            content: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            return content
    result: dict[str, Any] = json.loads(sorted(RESULTS.glob(f"*-{name}.json"))[-1].read_text(encoding="utf-8"))
    return result


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def where(result: dict[str, Any]) -> str:
    """On what machine, from what commit and file a result came."""
    machine = result["machine"]
    abilities = ", ".join(machine["abilities"]) or "no vector extensions listed"
    return f"*{machine['processor']}, {machine['cores']} cores ({abilities}); commit {result['commit']}.*"


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
        "pairs a second",
        "ratio",
        f"loss, mean of every {result['steps_per_loss']} steps",
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
    return f"{table(header, rows)}\n\n{where(result)}"


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
    """How near the bare matrix products the encoder runs."""
    rows = [
        [
            row["precision"],
            f"{row['products_gflops_all_cores']:.0f}",
            str(row["limit_texts_per_second"]),
            str(row["texts_per_second"]),
            f"{row['share_of_limit']:.0%}",
        ]
        for row in result["rows"]
    ]
    header = ["precision", "products, Gflop/s", "their limit, texts/s", "reached", "share"]
    shares = ", ".join(f"{name} {share:.1%}" for name, share in result["float32_shares"].items())
    return f"{table(header, rows)}\n\nTime in float32, by operator: {shares}.\n\n{where(result)}"


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


def cranfield(result: dict[str, Any]) -> str:
    """Retrieval by meaning, by words, and by both."""
    rows = [[row["mode"], f"{row['ndcg']:.2f}", f"{row['low']:.2f} to {row['high']:.2f}"] for row in result["rows"]]
    return f"{table([result['model'], 'nDCG@10', '95 % interval'], rows)}\n\n{where(result)}"


def scores(result: dict[str, Any]) -> str:
    """Our models beside their teachers, one a column."""
    header = ["", *result]
    models = list(result.values())
    rows = [[task, *(f"{model['sts'][task]:.2f}" for model in models)] for task in models[0]["sts"]]
    rows.append(["**STS average**", *(f"**{model['sts_average']:.2f}**" for model in models)])
    rows += [[task, *(f"{model['transfer'][task]:.2f}" for model in models)] for task in models[0]["transfer"]]
    rows.append(["**transfer average**", *(f"**{model['transfer_average']:.2f}**" for model in models)])
    rows.append(["**Cranfield nDCG@10**", *(f"**{model['cranfield']:.2f}**" for model in models)])
    return table(header, rows)


def texts(result: dict[str, Any]) -> str:
    """What the training texts are, and under which licence."""
    rows = [
        [
            f"{each['name']}: {each['kind']}",
            f"{each['texts']:,}",
            f"{each['registry']} {each['package']} {each['version']}".strip(),
            each["licence"],
        ]
        for each in result["sources"]
    ]
    removed = ", ".join(f"{name} {count:,}" for name, count in result["removed_by_file"].items())
    return (
        f"{table(['source', 'texts', 'package', 'licence'], rows)}\n\n"
        f"{result['texts']:,} texts; removed because an evaluation file has them: {result['removed']:,} ({removed})."
    )


def frontier(result: dict[str, Any]) -> str:
    """Shapes of students."""
    rows = [
        [
            row["shape"],
            f"{row['megabytes']:.1f}",
            f"{row['times_faster_float32']:.2f}",
            f"{row['times_faster_int8']:.2f}",
            f"{row['dev']:.2f}" if "dev" in row else "",
        ]
        for row in result["rows"]
    ]
    header = ["shape", "MB", "times faster, float32", "int8", f"{result['dev']}, after {result['steps']} steps"]
    return table(header, rows)


def layers(result: dict[str, Any]) -> str:
    """The best and the worst choice of layers of each size."""
    rows = []
    for count in sorted({len(row["layers"]) for row in result["rows"]}):
        ranked = [row for row in result["rows"] if len(row["layers"]) == count]
        best, worst = (f"{', '.join(map(str, row['layers']))}: {row['dev']:.2f}" for row in (ranked[0], ranked[-1]))
        rows.append([f"{count} of 6 layers", best, worst])
    return f"{table(['untrained', 'best', 'worst'], rows)}\n\nSTSb dev, Spearman x 100; all six: {result['whole']:.2f}."


def words(result: dict[str, Any]) -> str:
    """How unevenly words move, in each model of the layer lab."""
    rows = [
        [each["model"], *(", ".join(part[:6]) for part in (each["lowest"], each["middle"], each["highest"][::-1]))]
        for each in result["models"]
    ]
    groups = [
        [
            each["model"],
            *(f"{each[group][mean]:.4f}" for mean in ("variance", "variance_of_words") for group in GROUPS),
            f"{100 * each['content_moves_more']:.0f} %",
        ]
        for each in result["models"]
    ]
    sorts = ["variance", "lowest", "middle", "highest"]
    means = ["function words, as seen", "content words", "function words, each once", "content words"]
    header = ["variance", *means, "content above function"]
    return (
        f"{table(sorts, rows)}\n\n{table(header, groups)}\n\n"
        f"*{result['texts']:,} {result['source']}; words seen at least {result['min_count']} times.*"
    )


def sweeps(result: dict[str, Any]) -> str:
    """Each model's own reading, and the best."""
    rows = []
    for each in result["sweeps"]:
        own, best = each["own"], each["best"]
        interval = f"{own['score']:.2f} ({own['low']:.2f} to {own['high']:.2f})"
        is_other = best["name"] != own["name"]
        lead = f"{best['lead']:+.2f}, p = {best['p_corrected']:.3f}" if is_other else ""
        rows.append([each["model"], own["name"], interval, f"{best['name']}: {best['score']:.2f}", lead])
    first = result["sweeps"][0]
    header = [f"{first['n_pairs']:,} pairs of {first['data']}", "own reading", "score", "best", "lead, corrected"]
    return f"{table(header, rows)}\n\n*{first['protocol']}.*"


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


def wk_scores(result: dict[str, Any]) -> str:
    """Mean pooling beside SBERT-WK on every task, one model a column."""
    models = result["models"]
    rows = []
    for tasks in zip(*(model["comparisons"] for model in models), strict=True):
        cells = [f"{each['left']:.2f} {each['right']:.2f} ({_signed(each)})" for each in tasks]
        rows.append([f"{tasks[0]['task']}: {tasks[0]['protocol'].split(',')[0]}", *cells])
    header = ["mean, SBERT-WK (difference)", *(model["model"] for model in models)]
    bold = f"more than chance (paired test, p < {CHANCE} after Holm's correction over a model's tasks)"
    return f"{table(header, rows)}\n\nBold: {bold}."


def _signed(each: dict[str, Any]) -> str:
    difference = f"{each['right'] - each['left']:+.2f}"
    return f"**{difference}**" if each["p"] < CHANCE else difference


RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "encode": encode,
    "train": train,
    "start": start,
    "memory": memory,
    "limits": limits,
    "static": static,
    "cranfield": cranfield,
    "scores": scores,
    "texts": texts,
    "frontier": frontier,
    "layers": layers,
    "words": words,
    "sweeps": sweeps,
    "wk": wk,
    "wk_scores": wk_scores,
}


def rendered(page: str) -> str:
    """A page with all its places filled."""
    return PLACE.sub(lambda found: f"{found[1]}{RENDERERS[found[2]](newest(found[2]))}\n{found[3]}", page)


def main(check: bool) -> int:
    """Fill all pages, or say which are behind."""
    behind = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(MODELS.glob("*.md"))]:
        page = path.read_text(encoding="utf-8")
        if rendered(page) != page:
            behind.append(path.name)
            if not check:
                path.write_text(rendered(page), encoding="utf-8")
    if check and behind:
        print(f"behind their results: {', '.join(behind)}; run make docs", file=sys.stderr)
    return int(check and bool(behind))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
