"""The card of a trained model: from what, on what, how, with which scores and versions."""

from __future__ import annotations

import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path

from twinvec.files import write_json
from twinvec.model_folder import WK, read_model_folder
from twinvec.train.events import Finished, Score
from twinvec.train.recipe import Recipe
from twinvec.train.recipe_file import recipe_as_toml, with_bare_names

__all__ = ["write_card"]

INT8 = """
The weights are stored as int8 with scales, which other libraries read wrongly: give them the folder that
`encoder.save(folder)` writes.
"""
ALL_LAYERS = """
The vectors are read out of all layers by SBERT-WK, which other libraries do not know: they refuse this folder.
"""
PACKAGES = ("twinvec", "torch", "transformers", "tokenizers", "numpy")


def write_card(place: Path, *, recipe: Recipe, finished: Finished, first: float | None) -> None:
    """Write ``README.md``, and the scores as ``training/scores.json``."""
    (place / "README.md").write_text(
        card(recipe, finished, first=first, only_ours=_only_ours(place, recipe)), encoding="utf-8"
    )
    rows = [{"data": score.data, "protocol": score.protocol, "value": score.value} for score in finished.scores]
    write_json(
        place / "training/scores.json",
        {"seed": recipe.training.seed, "step": finished.step, "dev_before": first, "scores": rows},
    )


def _only_ours(place: Path, recipe: Recipe) -> str:
    """Why other libraries cannot use the model in ``place``; empty if they can."""
    is_wk = not recipe.model.static and isinstance(read_model_folder(place).readout, WK)
    return (INT8 if recipe.model.stored == "int8" else "") + (ALL_LAYERS if is_wk else "")


def card(recipe: Recipe, finished: Finished, *, first: float | None, only_ours: str = "") -> str:
    """The text of the card, in Markdown with the usual head."""
    recipe = with_bare_names(recipe)
    start = recipe.model.start
    name = finished.folder.name
    tags = ["sentence-similarity", *([] if only_ours else ["sentence-transformers"])]
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return f"""---
base_model: {start}
library_name: twinvec
pipeline_tag: sentence-similarity
tags: [{", ".join(tags)}]
---

# {name}

A sentence encoder, trained from `{start}` with [Twinvec](https://pypi.org/project/twinvec/).

```python
import twinvec

encoder = twinvec.load("{name}")
vectors = encoder.encode(["A plane is taking off.", "An air plane is taking off."])
```
{only_ours}
## Scores

{_scores(finished.scores, first)}

The weights are those of step {finished.step:,}; training took {finished.seconds / 60:.1f} minutes.

## Data

{_data(recipe)}

Keep the licence terms of `{start}` and of these data.

## Recipe

Seed {recipe.training.seed}. `training/` holds this recipe, the log and the learning curve.

```toml
{recipe_as_toml(recipe).strip()}
```

Made on {date.today().isoformat()} with Python {platform.python_version()}, {versions}.
"""


def _scores(scores: tuple[Score, ...], first: float | None) -> str:
    if not scores:
        return "None were taken: the recipe names neither dev nor test data."
    rows = [f"| {score.data} | {score.protocol} | {score.value:.2f} |" for score in scores]
    before = "" if first is None else f"\n\nBefore training, {scores[0].data} gave {first:.2f}."
    return "\n".join(["| data | score | |", "|---|---|--:|", *rows]) + before


def _data(recipe: Recipe) -> str:
    rows = [f"| {Path(part.source.file).name} | {part.objective} | {part.share:g} |" for part in recipe.data]
    return "\n".join(["| data | objective | passes per epoch |", "|---|---|--:|", *rows])
