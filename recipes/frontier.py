"""Compare shapes of student models: quality, size and speed after the same short training.

    python recipes/frontier.py train recipes/mini.toml FOLDER     # train a model of each shape for 240 steps
    python recipes/frontier.py measure recipes/mini.toml FOLDER docs/models/frontier

The second command writes ``frontier.json`` and ``frontier.png``. Run nothing else on the machine meanwhile.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import twinvec
from twinvec.data.sentences import gather_sentences
from twinvec.engine.weights import pack_int8, read_weights
from twinvec.training import Recipe, read_recipe, run_recipe

SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "2 layers x 1536": ((0, 5), 1536),
    "3 layers x 384": ((0, 3, 5), 384),
    "3 layers x 768": ((0, 3, 5), 768),
    "3 layers x 896": ((0, 3, 5), 896),
    "3 layers x 1152": ((0, 3, 5), 1152),
    "3 layers x 1536": ((0, 3, 5), 1536),
    "4 layers x 512": ((0, 2, 4, 5), 512),
    "4 layers x 768": ((0, 2, 4, 5), 768),
}
N_STEPS = 240
N_TEXTS = 2_000
N_ROUNDS = 7
INK, ACCENT, FAINT = "#1f2933", "#2563eb", "#94a3b8"


def folder_of(root: Path, shape: str) -> Path:
    """The folder of the model with this shape."""
    return root / shape.replace(" layers x ", "x")


def train(recipe: Recipe, root: Path) -> None:
    """Train a model of every shape that does not exist yet."""
    assert recipe.dev is not None
    for shape, (layers, feed_forward) in SHAPES.items():
        target = folder_of(root, shape)
        if target.is_dir():
            continue
        short = replace(
            recipe,
            model=replace(recipe.model, layers=layers, feed_forward=feed_forward),
            training=replace(recipe.training, max_steps=N_STEPS, warmup=0.1),
            dev=replace(recipe.dev, every=N_STEPS // 2),
        )
        for _ in run_recipe(short, target):
            pass
        print(shape, json.loads((target / "training/scores.json").read_text())["scores"][0]["value"])


def measure(recipe: Recipe, root: Path, target: Path) -> None:
    """Measure all shapes, in alternation with the model they were pruned from."""
    folders = {"whole": Path(recipe.model.start)} | {shape: folder_of(root, shape) for shape in SHAPES}
    texts = gather_sentences(N_TEXTS)
    seconds = {precision: timed(folders, texts, precision) for precision in ("float32", "int8")}
    rows = []
    for shape, folder in folders.items():
        row: dict[str, Any] = {"shape": shape, "megabytes": round(megabytes(folder), 1)}
        for precision, each in seconds.items():
            row[f"times_faster_{precision}"] = round(each["whole"] / each[shape], 2)
        if shape != "whole":
            scores = json.loads((folder / "training/scores.json").read_text())
            row["dev"] = round(scores["scores"][0]["value"], 2)
        rows.append(row)
        print(row)
    about = {"steps": N_STEPS, "texts": N_TEXTS, "rounds": N_ROUNDS, "dev": "STSb dev, Spearman x 100 of cosine"}
    target.with_suffix(".json").write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    draw(rows, target.with_suffix(".png"))


def timed(folders: dict[str, Path], texts: list[str], precision: Any) -> dict[str, float]:  # noqa: ANN401
    """Median seconds of each model; every round runs all models."""
    sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
    from common import alternate

    runs: dict[str, Callable[[], object]] = {}
    for shape, folder in folders.items():
        encoder = twinvec.load(folder, precision=precision)
        runs[shape] = lambda encoder=encoder: encoder.encode(texts, progress=False)  # type: ignore[misc]
    return alternate(runs, N_ROUNDS)


def megabytes(folder: Path) -> float:
    """The size of a model with int8 weights."""
    packed = pack_int8(read_weights(folder)).values()
    return (sum(values.nbytes for values in packed) + (folder / "tokenizer.json").stat().st_size) / 1e6


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Plot quality over speed; the area of a point is the size of the model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    students = [row for row in rows if "dev" in row]
    speeds, scores = ([row[name] for row in students] for name in ("times_faster_int8", "dev"))
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    best = [
        all(s <= x or d < y for s, d in zip(speeds, scores, strict=True)) for x, y in zip(speeds, scores, strict=True)
    ]
    edge = sorted((x, y) for x, y, is_best in zip(speeds, scores, best, strict=True) if is_best)
    axis.plot([x for x, _ in edge], [y for _, y in edge], color=FAINT, linestyle="--", linewidth=1, zorder=1)
    sizes = [row["megabytes"] * 12 for row in students]
    axis.scatter(speeds, scores, s=sizes, color=[ACCENT if each else FAINT for each in best], zorder=2)
    for row in students:
        label = f"{row['shape']}\n{row['megabytes']:.1f} MB"
        point = row["times_faster_int8"], row["dev"]
        axis.annotate(label, point, textcoords="offset points", xytext=(11, -4), fontsize=8.5, color=INK)
    axis.set_xlabel("times as fast as the whole model (six layers x 1536), both in int8")
    axis.set_ylabel("STSb dev, Spearman x 100")
    axis.set_title(f"Shapes after {N_STEPS} steps; dashed: none is both faster and better", loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#eef2f7")
    axis.set_axisbelow(True)
    axis.margins(0.14)
    figure.savefig(target)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    match sys.argv[1:]:
        case ["train", recipe_file, folder]:
            train(read_recipe(Path(recipe_file)), Path(folder))
        case ["measure", recipe_file, folder, drawing]:
            measure(read_recipe(Path(recipe_file)), Path(folder), Path(drawing))
        case _:
            sys.exit(__doc__)
