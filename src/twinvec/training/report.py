"""The output of a run: events, the model card, and the learning curve."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.choices import NetworkKind
from twinvec.extras import require
from twinvec.files import write_json
from twinvec.model.folder import WK, read_model_folder
from twinvec.training.loop import StepReport
from twinvec.training.recipe import WORD_NETWORKS, Recipe
from twinvec.training.recipe_file import recipe_as_toml, with_file_names
from twinvec.types import Array

__all__ = ["DevReport", "Event", "Finished", "Score", "Started", "draw_curve", "write_card"]


@dataclass(frozen=True, slots=True)
class Score:
    """A score with the name of its data and protocol."""

    data: str
    protocol: str
    value: float


@dataclass(frozen=True, slots=True)
class Started:
    """The run starts, or continues after ``step`` steps. ``first`` is the dev score before training."""

    step: int
    n_steps: int
    n_rows: int
    n_texts: int
    is_packed: bool
    first: Score | None


@dataclass(frozen=True, slots=True)
class DevReport:
    """A dev score."""

    step: int
    score: float
    is_best: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The model is written, with the weights of ``step``; ``scores`` are the dev score, then the test scores."""

    folder: Path
    step: int
    scores: tuple[Score, ...]
    seconds: float


Event = Started | StepReport | DevReport | Finished


INT8 = """
The weights are stored as int8 with scales. Other libraries read them incorrectly; give them the folder that its
method `save(folder)` writes.
"""
ALL_LAYERS = """
SBERT-WK reads the vectors from all layers. Other libraries do not know it and refuse this folder.
"""
WORDS = """
Other libraries cannot read this folder.
"""


@dataclass(frozen=True, slots=True)
class CardText:
    """What a model card says about a kind of network."""

    what: str = "A sentence encoder"
    pipeline_tag: str = "sentence-similarity"
    example: str = """encoder = twinvec.load("{name}")
vectors = encoder.encode(["A plane is taking off.", "An air plane is taking off."])"""


ENCODER = CardText()
WORD_NETWORK = CardText(
    "A network over word vectors",
    example="""texts = ["A plane is taking off.", "The cat sleeps."]
twinvec.search_texts("An air plane is taking off.", texts, model="{name}")""",
)
CARD_TEXTS: dict[NetworkKind, CardText] = {
    "infersent": WORD_NETWORK,
    "dan": WORD_NETWORK,
    "cross-encoder": CardText(
        "A cross-encoder, which scores two texts together",
        "text-ranking",
        """scorer = twinvec.load_scorer("{name}")
scores = scorer.score([("A plane is taking off.", "An air plane is taking off.")])""",
    ),
    "poly-encoder": CardText(
        "A poly-encoder, which scores candidates for a query",
        "text-ranking",
        """scorer = twinvec.load_scorer("{name}")  # the query is the first text of a pair
scores = scorer.score([("A plane is taking off.", "An air plane is taking off.")])
encoder = twinvec.load("{name}")  # embeds candidates; the only part that other libraries load""",
    ),
}
PACKAGES = ("twinvec", "torch", "transformers", "tokenizers", "numpy")


def write_card(path: Path, *, recipe: Recipe, finished: Finished, first: float | None) -> None:
    """Write ``README.md``, and the scores as ``training/scores.json``."""
    part = recipe.model
    is_wk = part.network == "bi-encoder" and any(isinstance(each, WK) for each in read_model_folder(path).modules)
    is_words = part.network in WORD_NETWORKS
    reasons = {INT8: part.stored == "int8" and not is_words, ALL_LAYERS: is_wk, WORDS: is_words}
    only_ours = "".join(reason for reason, applies in reasons.items() if applies)
    (path / "README.md").write_text(card(recipe, finished, first=first, only_ours=only_ours), encoding="utf-8")
    scores = {"scores": [asdict(score) for score in finished.scores]}
    head = {"seed": recipe.training.seed, "step": finished.step, "dev_before": first}
    write_json(path / "training/scores.json", head | scores)


def card(recipe: Recipe, finished: Finished, *, first: float | None, only_ours: str = "") -> str:
    """The model card, in Markdown with YAML metadata. ``only_ours`` says why other libraries cannot use the model."""
    recipe = with_file_names(recipe)
    start = recipe.model.start
    name = finished.folder.name
    text = CARD_TEXTS.get(recipe.model.network, ENCODER)
    tag = "text-classification" if _is_classifier(recipe) else text.pipeline_tag
    tags = [tag, *([] if only_ours else ["sentence-transformers"])]
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return f"""---
base_model: {start}
library_name: twinvec
pipeline_tag: {tag}
tags: [{", ".join(tags)}]
---

# {name}

{text.what}, trained from `{start}` with [Twinvec](https://pypi.org/project/twinvec/).

```python
import twinvec

{text.example.format(name=name)}
```
{only_ours}
## Scores

{_scores(finished.scores, first)}

The weights are those of step {finished.step:,}; training took {finished.seconds / 60:.1f} minutes.

## Data

{_data(recipe)}

Keep the license terms of `{start}` and of these data.

## Recipe

Seed {recipe.training.seed}. `training/` holds this recipe, the log and the learning curve.

```toml
{recipe_as_toml(recipe).strip()}
```

Made on {date.today().isoformat()} with Python {platform.python_version()}, {versions}.
"""


def _is_classifier(recipe: Recipe) -> bool:
    """Whether the model is a cross-encoder that returns labels."""
    return recipe.model.network == "cross-encoder" and recipe.data[0].source.kind == "labelled_pairs"


def _scores(scores: tuple[Score, ...], first: float | None) -> str:
    if not scores:
        return "No scores: the recipe names neither dev nor test data."
    rows = [f"| {score.data} | {score.protocol} | {score.value:.2f} |" for score in scores]
    before = "" if first is None else f"\n\nBefore training, the score on {scores[0].data} was {first:.2f}."
    return "\n".join(["| data | score | |", "|---|---|--:|", *rows]) + before


def _data(recipe: Recipe) -> str:
    rows = [f"| {Path(part.source.file).name} | {part.objective} | {part.share:g} |" for part in recipe.data]
    return "\n".join(["| data | objective | passes per epoch |", "|---|---|--:|", *rows])


INK, ACCENT, FAINT = "#1f2933", "#2563eb", "#cbd5e1"


def smoothed(values: Array, window: int) -> Array:
    """The running mean over the last ``window`` values, ``(n,)`` to ``(n,)``.

    >>> smoothed(np.array([2.0, 4.0, 6.0]), 2).tolist()
    [2.0, 3.0, 5.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def draw_curve(rows: Sequence[Mapping[str, Any]], target: Path, *, title: str, protocol: str = "") -> None:
    """Draw the learning curve from the rows of a log; ``protocol`` names the dev score, if there is one."""
    require("matplotlib", extra="train", feature="The learning curve")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps = [row for row in rows if "loss" in row]
    scores = [row for row in rows if "dev" in row]
    figure = Figure(figsize=(8, 5.4 if scores else 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2 if scores else 1, 1, sharex=True, squeeze=False)[:, 0]
    x, losses = [row["step"] for row in steps], np.array([row["loss"] for row in steps], dtype=np.float64)
    axes[0].plot(x, losses, color=FAINT, linewidth=0.7, label="each step")
    axes[0].plot(x, smoothed(losses, max(1, len(x) // 50)), color=ACCENT, linewidth=1.6, label="running mean")
    axes[0].set_ylabel("loss")
    axes[0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    low, high = np.quantile(losses, [0.005, 0.995]) if len(losses) else (0.0, 1.0)
    axes[0].set_ylim(low - 0.1 * (high - low + 1e-9), high + 0.1 * (high - low + 1e-9))
    axes[0].set_title(title, loc="left", fontsize=11, color=INK)
    if scores:
        _draw_scores(axes[1], scores, protocol)
    axes[-1].set_xlabel("step")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#eef2f7")
        axis.set_axisbelow(True)
    figure.savefig(target)


def _draw_scores(axis: Any, scores: Sequence[Mapping[str, Any]], protocol: str) -> None:  # noqa: ANN401 - matplotlib's
    best = max((row for row in scores if row["step"]), key=lambda row: float(row["dev"]), default=scores[0])
    axis.plot([row["step"] for row in scores], [row["dev"] for row in scores], color=ACCENT, marker="o", markersize=4)
    axis.plot([best["step"]], [best["dev"]], color=ACCENT, marker="o", markersize=10, markerfacecolor="none")
    axis.set_title(f"best {best['dev']:.2f}, at step {best['step']:,}", loc="right", fontsize=10, color=INK)
    axis.set_ylabel(f"dev: {protocol}" if protocol else "dev")
