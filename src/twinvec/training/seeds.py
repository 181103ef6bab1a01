"""The same recipe with several seeds: one run after the other, and the best model kept. As the paper reports.

The models of all seeds lie in ``<target>.seeds``; those that are there already are not trained again.
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
from twinvec.training.prepare import read_material
from twinvec.training.processes import find_processes
from twinvec.training.recipe import Recipe
from twinvec.training.report import Event, Score
from twinvec.training.run import DEFAULT_OPTIONS, RunOptions, run_recipe

__all__ = ["SeedStarted", "SeedsFinished", "Spread", "TrainEvent", "run_seeds"]

SCORES = "training/scores.json"


@dataclass(frozen=True, slots=True)
class SeedStarted:
    """The run of one seed is about to begin, or was done before."""

    seed: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """A score over all seeds; ``deviation`` is that of a sample (n - 1)."""

    data: str
    protocol: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of all seeds."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 for a single seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def best(self) -> float:
        """The highest."""
        return max(self.values)


@dataclass(frozen=True, slots=True)
class SeedsFinished:
    """All seeds are trained; the model of ``best_seed``, the best on dev, is at ``folder``."""

    folder: Path
    seeds: tuple[int, ...]
    best_seed: int
    spreads: tuple[Spread, ...]

    @property
    def best_scores(self) -> tuple[Score, ...]:
        """The scores of the model that was kept: dev's, then the tests'."""
        index = self.seeds.index(self.best_seed)
        return tuple(Score(each.data, each.protocol, each.values[index]) for each in self.spreads)


TrainEvent = Event | SeedStarted | SeedsFinished


def run_seeds(
    recipe: Recipe, target: Path, n_seeds: int, options: RunOptions = DEFAULT_OPTIONS
) -> Generator[TrainEvent, None, None]:
    """Train ``n_seeds`` times, with the recipe's seed and those after it."""
    if recipe.dev is None:
        raise InputError("Several seeds need a score to choose the best by.", hint="Name dev data.")
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
    """Whether the model of this very recipe, with these very data, is there."""
    path = folder / "training/identity.json"
    return path.is_file() and read_json(path) == read_material(recipe).identity


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
            f"The scores of a seed ({SCORES} in its folder) cannot be read: {error}.",
            hint=f"Remove that folder in {target}.seeds, and run the same command again.",
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
    return "\n".join(
        [
            f"{head}the best on {spreads[0].data}.\n",
            "| data | score | mean ± deviation | best |",
            "|---|---|--:|--:|",
            *rows,
            "",
        ]
    )
