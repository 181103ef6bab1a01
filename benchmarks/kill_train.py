"""Kill a training run with SIGKILL at random moments, continue it, and compare the model bit for bit.

    python benchmarks/kill_train.py [--kills 20] [--seed 0] [--epochs 20]

A tiny BERT with random weights is pruned and trained on generated pairs, with a checkpoint every few steps and dev
scores that select the best weights. The run is killed and restarted until it finishes, and then started over, until
there were enough kills. Every model must have the weights of an uninterrupted run, and its log must have every step
once, with the same loss.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import write_result
from kills import digests, kill_arguments, kill_fork

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import matplotlib.figure  # noqa: F401 - loaded here, so that forks need not
import torch
import transformers.models.bert.modeling_bert  # noqa: F401

from tiny import write_tiny_model  # type: ignore[import-not-found] # of the tests
from training import make_recipe  # type: ignore[import-not-found]
from twinvec.training.recipe import Recipe
from twinvec.training.run import RunOptions, run_recipe

CHECKPOINT_EVERY = 3
DECIDING = (".safetensors", ".json")  # the files that determine vectors; others contain times


def train(recipe: Recipe, target: Path) -> None:
    """The process that is killed."""
    torch.set_num_threads(1)
    logging.disable()
    with open(os.devnull, "w") as silence:
        os.dup2(silence.fileno(), 2)
    for _ in run_recipe(recipe, target, RunOptions(CHECKPOINT_EVERY)):
        pass


def model_of(folder: Path) -> dict[str, str]:
    """The checksums of all files that determine vectors."""
    return {
        name: each
        for name, each in digests(folder).items()
        if name.endswith(DECIDING) and not name.startswith("training")
    }


def log_of(folder: Path) -> list[tuple[int, float | None, float | None]]:
    """The steps of a run in the order of its log, with their losses and dev scores."""
    rows = [json.loads(line) for line in (folder / "training/log.jsonl").read_text().splitlines()]
    return [(row["step"], row.get("loss"), row.get("dev")) for row in rows]


def last_step(run: Path) -> int:
    """The last step in the log of a run."""
    log = run / "log.jsonl"
    lines = log.read_text().split("\n")[:-1] if log.is_file() else []
    return json.loads(lines[-1])["step"] if lines else 0


def run(work: Path, kills: int, seed: int, epochs: int) -> dict[str, Any]:
    """Kill this many times, and compare every finished model."""
    rng = random.Random(seed)
    recipe = make_recipe(work, write_tiny_model(work / "tiny"), epochs=epochs)
    recipe = replace(recipe, model=replace(recipe.model, layers=(0, 2)))
    whole, target, unfinished = work / "whole", work / "model", work / "model.run"
    started = time.perf_counter()
    assert not kill_fork(partial(train, recipe, whole), None)
    took_s = time.perf_counter() - started
    steps: list[int] = []  # at each kill
    n_runs = 0
    while len(steps) < kills or unfinished.exists():
        after_s = rng.uniform(0, took_s) if len(steps) < kills else None
        if kill_fork(partial(train, recipe, target), after_s):
            steps.append(last_step(unfinished))
            print(f"kill {len(steps)}: at step {steps[-1]}", file=sys.stderr)
            if not target.exists():
                continue
        assert model_of(target) == model_of(whole), "the weights differ"
        assert log_of(target) == log_of(whole), "a step is missing, repeated or different"
        n_runs += 1
        for folder in (target, unfinished):  # finished: start over
            shutil.rmtree(folder, ignore_errors=True)
    return {
        "kills": len(steps),
        "runs": n_runs,
        "n_steps": max(step for step, _, _ in log_of(whole)),
        "checkpoint_every": CHECKPOINT_EVERY,
        "steps_at_kills": steps,
        "seconds": round(time.perf_counter() - started),
        "same_weights": True,
        "same_log": True,
        "seed": seed,
    }


def main() -> None:
    parser = kill_arguments(__doc__)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of 8 steps (default: 20)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        result = run(Path(work), options.kills, options.seed, options.epochs)
    print(json.dumps(result))
    if not options.no_result:
        write_result("kill_train", result)


if __name__ == "__main__":
    main()
