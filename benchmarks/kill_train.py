"""Kill a training run with SIGKILL at random moments, let it go on, and compare the model bit for bit.

    python benchmarks/kill_train.py [--kills 20] [--seed 0] [--epochs 20]

A tiny BERT with random weights is made smaller and trained on made-up pairs, with a checkpoint every few steps and a
dev score now and then, of which the best weights are kept. The run is killed and started again until it is done; then
all begins anew, until there were as many kills as asked for. Every model must have the weights of a run that nobody
killed, and its log every step once, with the same loss.
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

import matplotlib.figure  # noqa: F401 - here, so that forks need not load it
import torch
import transformers.models.bert.modeling_bert  # noqa: F401

from tiny import write_tiny_model  # type: ignore[import-not-found] # of the tests
from training import make_recipe  # type: ignore[import-not-found]
from twinvec.training.recipe import Recipe
from twinvec.training.run import RunOptions, run_recipe

CHECKPOINT_EVERY = 3
DECIDING = (".safetensors", ".json")  # of a model's files; cards and records tell times


def train(recipe: Recipe, target: Path) -> None:
    """Be the process that is killed."""
    torch.set_num_threads(1)
    logging.disable()
    with open(os.devnull, "w") as silence:
        os.dup2(silence.fileno(), 2)
    for _ in run_recipe(recipe, target, RunOptions(CHECKPOINT_EVERY)):
        pass


def model_of(folder: Path) -> dict[str, str]:
    """The checksums of all that decides vectors."""
    found = digests(folder)
    return {name: each for name, each in found.items() if name.endswith(DECIDING) and not name.startswith("training")}


def log_of(folder: Path) -> list[tuple[int, float | None, float | None]]:
    """The steps of a run in the order of its log, with their losses and dev scores."""
    rows = [json.loads(line) for line in (folder / "training/log.jsonl").read_text().splitlines()]
    return [(row["step"], row.get("loss"), row.get("dev")) for row in rows]


def last_step(run: Path) -> int:
    """How far a run was when it was killed, by its log."""
    log = run / "log.jsonl"
    lines = log.read_text().split("\n")[:-1] if log.is_file() else []
    return json.loads(lines[-1])["step"] if lines else 0


def run(place: Path, kills: int, seed: int, epochs: int) -> dict[str, Any]:
    """Kill so many runs, and compare."""
    rng = random.Random(seed)
    recipe = make_recipe(place, write_tiny_model(place / "tiny"), epochs=epochs)
    recipe = replace(recipe, model=replace(recipe.model, layers=(0, 2)))
    whole, target, unfinished = place / "whole", place / "model", place / "model.run"
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
        assert log_of(target) == log_of(whole), "a step is lost, there twice, or another one"
        n_runs += 1
        for folder in (target, unfinished):  # it is done: begin anew
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
    """Kill, compare, print, write."""
    parser = kill_arguments(__doc__)
    parser.add_argument("--epochs", type=int, default=20, help="of 8 steps (default: 20)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        told = run(Path(place), options.kills, options.seed, options.epochs)
    print(json.dumps(told))
    if not options.no_result:
        write_result("kill_train", told)


if __name__ == "__main__":
    main()
