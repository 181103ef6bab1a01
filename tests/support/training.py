"""Small data sets and recipes for tests of training."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from tiny import WORDS
from twinvec.data.roles import DataSource

LABELS = ("contradiction", "entailment", "neutral")


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, 12)))


def write_nli(path: Path, n: int = 60, seed: int = 0) -> Path:
    """Each premise occurs three times, as in SNLI; the label depends on the first word of the hypothesis."""
    rng = random.Random(seed)
    lines = ["label\tpremise\thypothesis"]
    for i in range(n):
        premise = sentence(random.Random(seed * 1000 + i // 3))
        hypothesis = sentence(rng)
        lines.append(f"{LABELS[len(hypothesis.split()[0]) % 3]}\t{premise}\t{hypothesis}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_sts(path: Path, n: int = 40, seed: int = 1) -> Path:
    """The score is five times the share of common words."""
    rng = random.Random(seed)
    lines = ["score\ttext1\ttext2"]
    for _ in range(n):
        left = sentence(rng).split()
        right = [word if rng.random() < 0.6 else rng.choice(WORDS) for word in left]
        score = 5 * len(set(left) & set(right)) / len(set(left) | set(right))
        lines.append(f"{score:.3f}\t{' '.join(left)}\t{' '.join(right)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_pairs(path: Path, n: int = 40, seed: int = 2) -> Path:
    rng = random.Random(seed)
    lines = ["anchor\tpositive\tnegative"]
    for _ in range(n):
        anchor = sentence(rng)
        lines.append(f"{anchor}\t{anchor.split()[0]} {sentence(rng)}\t{sentence(rng)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def sts_source(path: Path) -> DataSource:
    return DataSource(str(path), "scored_pairs", score_range=(0.0, 5.0))


def make_recipe(folder: Path, model: Path, *, dev: bool = True, **settings):
    """Softmax on generated pairs, evaluated on generated scores."""
    from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings

    nli = DataSource(str(write_nli(folder / "nli.tsv")), "labelled_pairs")
    defaults = {"batch_size": 8, "learning_rate": 1e-3, "epochs": 2}
    return Recipe(
        ModelPart(str(model)),
        (DataPart(nli, "softmax"),),
        TrainSettings(**defaults | settings),
        DevPart(sts_source(write_sts(folder / "sts.tsv")), every=5) if dev else None,
    )


def with_settings(recipe, **settings):
    return replace(recipe, training=replace(recipe.training, **settings))


def run(recipe, target: Path, **options):
    """Run a recipe and return all events."""
    from twinvec.training.run import RunOptions, run_recipe

    return list(run_recipe(recipe, target, RunOptions(**options)))


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def assert_same_bits(one: Path, other: Path) -> None:
    left, right = weights(one), weights(other)
    assert left.keys() == right.keys()
    for name, values in left.items():
        assert values.tobytes() == right[name].tobytes(), name
