"""Renders the scores, training texts and layers of models as Markdown."""

from __future__ import annotations

from typing import Any

from result_markdown import table

GROUPS = "function_words", "content_words"
CHANCE = 0.05


def scores(result: dict[str, Any]) -> str:
    """Scores of our models and their teachers, one model per column."""
    header = ["", *result]
    models = list(result.values())
    rows = [[task, *(f"{model['sts'][task]:.2f}" for model in models)] for task in models[0]["sts"]]
    rows.append(["**STS average**", *(f"**{model['sts_average']:.2f}**" for model in models)])
    rows += [[task, *(f"{model['transfer'][task]:.2f}" for model in models)] for task in models[0]["transfer"]]
    rows.append(["**transfer average**", *(f"**{model['transfer_average']:.2f}**" for model in models)])
    rows.append(["**Cranfield nDCG@10**", *(f"**{model['cranfield']:.2f}**" for model in models)])
    return table(header, rows)


def averages(result: dict[str, Any]) -> str:
    """Average scores, one model per row."""
    header = ["", "STS average", "transfer average", "Cranfield nDCG@10"]
    keys = "sts_average", "transfer_average", "cranfield"
    return table(header, [[name, *(f"{model[key]:.2f}" for key in keys)] for name, model in result.items()])


def korean(result: dict[str, Any]) -> str:
    """Korean scores and, where they were measured, English ones, one model per column."""
    names = list(dict.fromkeys(name for model in result.values() for name in model))
    rows = [[name, *(f"{model[name]:.2f}" if name in model else "" for model in result.values())] for name in names]
    return table(["", *result], rows)


def korean_tried(result: dict[str, Any]) -> str:
    """Dev scores of trainings that differ in one setting, one training per row."""
    header = ["", "steps", "KorSTS dev", "STSb dev", "English-Korean dev"]
    keys = "korsts-dev", "stsb-dev", "cross-dev"
    rows = [[row["what"], f"{row['step']:,}", *(f"{row[key]:.2f}" for key in keys)] for row in result["rows"]]
    return table(header, rows)


def korean_texts(result: dict[str, Any]) -> str:
    """The training texts of the Korean model, and how many were removed."""
    rows = [[each["source"], f"{each['texts']:,}", each["license"]] for each in result["sources"]]
    removed = ", ".join(f"{name} {count:,}" for name, count in result["removed_by_file"].items())
    return (
        f"{table(['source', 'texts or pairs', 'license'], rows)}\n\n"
        f"Another {sum(result['removed_by_file'].values()):,} were removed because an evaluation file contains them "
        f"({removed})."
    )


def dev_scores(result: dict[str, Any]) -> str:
    """Scores on the data that choose between recipes, one model per row."""
    keys = next(iter(result.values()))
    return table(["", *keys], [[name, *(f"{row[key]:.2f}" for key in keys)] for name, row in result.items()])


def texts(result: dict[str, Any]) -> str:
    """The training texts and their licenses."""
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
        f"{table(['source', 'texts', 'package', 'license'], rows)}\n\n"
        f"{result['texts']:,} texts. Another {result['removed']:,} were removed because an evaluation file "
        f"contains them ({removed})."
    )


def frontier(result: dict[str, Any]) -> str:
    """Size, speed and score of students of different shapes."""
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
    header = [
        "shape",
        "MB",
        "times faster, float32",
        "times faster, int8",
        f"{result['dev']} after {result['steps']} steps",
    ]
    return table(header, rows)


def layers(result: dict[str, Any]) -> str:
    """The best and the worst choice of layers, for each number of layers."""
    rows = []
    for count in sorted({len(row["layers"]) for row in result["rows"]}):
        ranked = [row for row in result["rows"] if len(row["layers"]) == count]
        best, worst = (f"{', '.join(map(str, row['layers']))}: {row['dev']:.2f}" for row in (ranked[0], ranked[-1]))
        rows.append([f"{count} of 6 layers", best, worst])
    caption = f"Scores are Spearman x 100 on STSb dev; all six layers score {result['whole']:.2f}."
    return f"{table(['untrained', 'best', 'worst'], rows)}\n\n{caption}"


def words(result: dict[str, Any]) -> str:
    """How unevenly the states of words change from layer to layer, for each model."""
    rows = [
        [each["model"], *(", ".join(part[:6]) for part in (each["lowest"], each["middle"], each["highest"][::-1]))]
        for each in result["models"]
    ]
    groups = [
        [
            each["model"],
            *(f"{each[group][mean]:.4f}" for mean in ("variance", "variance_of_words") for group in GROUPS),
            f"{100 * each['content_moves_more']:.0f}%",
        ]
        for each in result["models"]
    ]
    extremes = ["variance", "lowest", "middle", "highest"]
    means = ["function words, every occurrence", "content words", "function words, each word once", "content words"]
    header = ["variance", *means, "content above function"]
    return (
        f"{table(extremes, rows)}\n\n{table(header, groups)}\n\n"
        f"*{result['texts']:,} {result['source']}; words that occur at least {result['min_count']} times.*"
    )


def sweeps(result: dict[str, Any]) -> str:
    """The own readout of each model, and the best."""
    rows = []
    for each in result["sweeps"]:
        own, best = each["own"], each["best"]
        interval = f"{own['score']:.2f} ({own['low']:.2f} to {own['high']:.2f})"
        is_other = best["name"] != own["name"]
        lead = f"{best['lead']:+.2f}, p = {best['p_corrected']:.3f}" if is_other else ""
        rows.append([each["model"], own["name"], interval, f"{best['name']}: {best['score']:.2f}", lead])
    first = result["sweeps"][0]
    header = [
        f"{first['n_pairs']:,} pairs of {first['data']}",
        "own readout",
        "score",
        "best readout",
        "lead, corrected p",
    ]
    return f"{table(header, rows)}\n\n*{first['protocol']}.*"


def wk_scores(result: dict[str, Any]) -> str:
    """Mean pooling compared with SBERT-WK on every task, one model per column."""
    models = result["models"]
    rows = []
    for tasks in zip(*(model["comparisons"] for model in models), strict=True):
        cells = [f"{each['left']:.2f} {each['right']:.2f} ({_signed(each)})" for each in tasks]
        rows.append([f"{tasks[0]['task']}: {tasks[0]['protocol'].split(',')[0]}", *cells])
    header = ["mean pooling, SBERT-WK (difference)", *(model["model"] for model in models)]
    bold = f"more than chance (paired test, p < {CHANCE} after Holm's correction over the tasks of a model)"
    return f"{table(header, rows)}\n\nBold means {bold}."


def _signed(each: dict[str, Any]) -> str:
    difference = f"{each['right'] - each['left']:+.2f}"
    return f"**{difference}**" if each["p"] < CHANCE else difference
