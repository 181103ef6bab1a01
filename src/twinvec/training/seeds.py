"""Train a recipe with several seeds in sequence, as in the paper, and keep the best model.

The models of all seeds are in ``<target>.seeds``; existing ones are not trained again.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from twinvec.errors import InputError, TrainingError, TwinvecError
from twinvec.files import new_folder, read_json, write_json
from twinvec.ownership import MODEL
from twinvec.training.checkpoint import check_model_target
from twinvec.training.prepare import read_inputs
from twinvec.training.processes import find_processes
from twinvec.training.recipe import Recipe
from twinvec.training.report import Event, Score
from twinvec.training.run import DEFAULT_OPTIONS, RunOptions, run_recipe

__all__ = ["SeedStarted", "SeedsFinished", "Spread", "TrainEvent", "run_seeds"]

SCORES = "training/scores.json"


@dataclass(frozen=True, slots=True)
class SeedStarted:
    """The run of one seed starts, or is already done."""

    seed: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """A score over all seeds; ``deviation`` is the sample standard deviation (n - 1)."""

    data: str
    protocol: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over all seeds."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 for a single seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def best(self) -> float:
        """The highest score."""
        return max(self.values)


@dataclass(frozen=True, slots=True)
class SeedsFinished:
    """All seeds are trained; ``folder`` has the model of ``best_seed``, the best on dev."""

    folder: Path
    seeds: tuple[int, ...]
    best_seed: int
    spreads: tuple[Spread, ...]

    @property
    def best_scores(self) -> tuple[Score, ...]:
        """The scores of the best model: the dev score, then the test scores."""
        index = self.seeds.index(self.best_seed)
        return tuple(Score(each.data, each.protocol, each.values[index]) for each in self.spreads)


TrainEvent = Event | SeedStarted | SeedsFinished


def run_seeds(
    recipe: Recipe, target: Path, n_seeds: int, options: RunOptions = DEFAULT_OPTIONS
) -> Generator[TrainEvent, None, None]:
    """Train with ``n_seeds`` seeds, starting from the recipe's seed."""
    if recipe.dev is None:
        raise InputError("Several seeds require a dev score to choose the best.", hint="Add dev data to the recipe.")
    processes = find_processes(options.device)
    processes.first(lambda: check_model_target(target, force=options.force))
    first = recipe.training.seed
    folders = {
        seed: target.with_name(f"{target.name}.seeds") / f"seed-{seed}" for seed in range(first, first + n_seeds)
    }
    for seed, folder in folders.items():
        own = replace(recipe, training=replace(recipe.training, seed=seed))
        is_done = processes.first(partial(_is_trained, folder, own))
        yield SeedStarted(seed, is_done)
        if not is_done:
            yield from run_recipe(own, folder, options)
    yield processes.first(lambda: _gather(target, folders, options))


def _is_trained(folder: Path, recipe: Recipe) -> bool:
    """Whether the folder has a model of exactly this recipe and data."""
    path = folder / "training/identity.json"
    return path.is_file() and read_json(path) == read_inputs(recipe).identity


def _gather(target: Path, folders: dict[int, Path], options: RunOptions) -> SeedsFinished:
    try:
        columns = zip(*(read_json(folder / SCORES)["scores"] for folder in folders.values()), strict=True)
        spreads = tuple(
            Spread(rows[0]["data"], rows[0]["protocol"], tuple(float(row["value"]) for row in rows)) for rows in columns
        )
        if not spreads:
            raise ValueError("there are none")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, TwinvecError):
            raise
        raise TrainingError(
            f"Cannot read the scores of a seed ({SCORES} in its folder): {error}.",
            hint=f"Remove that folder in {target}.seeds, then run the same command again.",
        ) from error
    best = max(zip(spreads[0].values, folders, strict=True), key=lambda pair: pair[0])[1]
    with new_folder(target, MODEL, replace=options.force) as path:
        shutil.copytree(folders[best], path, dirs_exist_ok=True)
        rows = [{"data": each.data, "protocol": each.protocol, "values": list(each.values)} for each in spreads]
        write_json(path / "training/seeds.json", {"seeds": list(folders), "best_seed": best, "scores": rows})
        card = (path / "README.md").read_text(encoding="utf-8").replace(folders[best].name, target.name)
        (path / "README.md").write_text(card + _section(spreads, tuple(folders), best), encoding="utf-8")
    return SeedsFinished(target, tuple(folders), best, spreads)


def _section(spreads: tuple[Spread, ...], seeds: tuple[int, ...], best: int) -> str:
    rows = [
        f"| {each.data} | {each.protocol} | {each.mean:.2f} ± {each.deviation:.2f} | {each.best:.2f} |"
        for each in spreads
    ]
    head = f"\n## All seeds\n\nTrained with the {len(seeds)} seeds {seeds[0]} to {seeds[-1]}; this is seed {best}, "
    table = ["| data | score | mean ± deviation | best |", "|---|---|--:|--:|", *rows, ""]
    return "\n".join([f"{head}the best on {spreads[0].data}.\n", *table])
