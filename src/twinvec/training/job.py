"""``twinvec.train``: one call from a recipe to a trained model. Importing this module does not load torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinvec.errors import InputError

if TYPE_CHECKING:
    from twinvec.training.recipe import Recipe
    from twinvec.training.report import Finished, Score
    from twinvec.training.run import RunOptions
    from twinvec.training.seeds import SeedsFinished, TrainEvent

__all__ = ["TrainResult", "train"]


@dataclass(frozen=True, slots=True)
class TrainResult:
    """A trained model: its folder, the dev score of the kept weights, and a score per test file.

    With several seeds, these are those of the best seed; ``seeds`` has the mean and deviation over all seeds.
    """

    folder: Path
    dev: Score | None
    test: tuple[Score, ...]
    seeds: SeedsFinished | None = None


def train(
    recipe: str | os.PathLike[str] | Recipe,
    folder: str | os.PathLike[str],
    *,
    seeds: int = 1,
    options: RunOptions | None = None,
    trust_pickle: bool = False,
    watch: Callable[[TrainEvent], None] | None = None,
) -> TrainResult:
    """Train a model by a recipe and write it to ``folder``. Requires the extra ``train``.

    If a run was stopped, calling it again continues from its checkpoint, with a bit-identical result.

    Args:
        recipe: The path of a TOML file, or a :class:`twinvec.training.Recipe`.
        seeds: Train with this many seeds in sequence, and keep the best model; more than one requires dev data.
        options: Options that do not affect the result: checkpoints, device, when to stop, whether to overwrite a model.
        trust_pickle: Allow a recipe file to start from weights stored as a pickle, which can run code.
        watch: Called with every event: start, each step, each dev score, end. If it raises an exception, the run is
            saved and ends.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "anchor\\tpositive\\na cat\\ta kitten\\na car\\tan automobile\\n"
    >>> _ = (folder / "pairs.tsv").write_text(rows)
    >>> lines = ["[model]", "start = 'twinvec-mini'", "[[data]]", "file = 'pairs.tsv'", "objective = 'ranking'"]
    >>> _ = (folder / "recipe.toml").write_text("\\n".join(lines))
    >>> train(folder / "recipe.toml", folder / "my-model").folder.name
    'my-model'
    """
    from twinvec.training import Finished, Recipe, RunOptions, SeedsFinished, read_recipe, run_recipe, run_seeds

    if not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"seeds must be a whole number of at least 1, got {seeds!r}.")
    chosen = recipe if isinstance(recipe, Recipe) else read_recipe(Path(recipe), trust_pickle=trust_pickle)
    options = options or RunOptions()
    target = Path(folder)
    events = run_recipe(chosen, target, options) if seeds == 1 else run_seeds(chosen, target, seeds, options)
    last: TrainEvent | None = None
    with closing(events):  # an exception in watch saves the run now, not at garbage collection
        for last in events:
            if watch is not None:
                watch(last)
    assert isinstance(last, Finished | SeedsFinished)  # the last event of either
    return _result(last, has_dev=chosen.dev is not None)


def _result(last: Finished | SeedsFinished, *, has_dev: bool) -> TrainResult:
    from twinvec.training import Finished

    scores = last.scores if isinstance(last, Finished) else last.best_scores
    dev, test = (scores[0], scores[1:]) if has_dev and scores else (None, scores)
    return TrainResult(last.folder, dev, test, None if isinstance(last, Finished) else last)
