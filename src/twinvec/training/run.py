"""A training run: from a recipe to a model folder, with checkpoints. Yields events.

The model appears at ``target`` atomically when it is done. An interrupted run continues from its checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from safetensors import SafetensorError

from twinvec.choices import TrainDevice
from twinvec.errors import TrainingError
from twinvec.files import new_folder, write_json
from twinvec.ownership import MODEL
from twinvec.training.checkpoint import (
    RunFolder,
    StepLog,
    load_checkpoint,
    load_weights,
    read_log,
    save_checkpoint,
    save_weights,
)
from twinvec.training.dev_score import DevScore
from twinvec.training.loop import StepReport, Training, n_steps, start_training, train_steps
from twinvec.training.prepare import Prepared, prepare, read_inputs
from twinvec.training.processes import Processes, find_processes
from twinvec.training.recipe import Recipe, check_count
from twinvec.training.recipe_file import recipe_as_toml, with_absolute_paths
from twinvec.training.report import DevReport, Event, Finished, Score, Started, draw_curve, write_card

__all__ = ["DEFAULT_OPTIONS", "RunOptions", "run_recipe"]

logger = logging.getLogger(__name__)

N_DEV_SCORES = 10  # dev scores per run, unless the recipe sets ``every``


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options that do not affect the result: how often to save, whether to overwrite, the device, when to stop."""

    checkpoint_every: int = 500
    force: bool = False
    device: TrainDevice = "auto"
    should_stop: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        check_count("checkpoint_every", self.checkpoint_every, optional=False)


DEFAULT_OPTIONS = RunOptions()


@dataclass
class Progress:
    """The state of a run besides its weights."""

    first_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    last_score: float | None = None
    n_worse: int = 0
    seconds: float = 0.0


def _progress(saved: object, path: Path) -> Progress:
    default = asdict(Progress())
    if not isinstance(saved, dict) or saved.keys() != default.keys():
        raise TrainingError(f"{path} has no valid progress.", hint="Start over with --force, or restore it.")
    for name, value in saved.items():
        if not isinstance(value, (int, float)) and not (value is None and default[name] is None):
            raise TrainingError(f"In {path}, {name} is {value!r:.40}.", hint="Start over with --force.")
    return Progress(**saved)


def run_recipe(recipe: Recipe, target: Path, options: RunOptions = DEFAULT_OPTIONS) -> Generator[Event, None, None]:
    """Train by a recipe, write the model to ``target``, and yield events.

    You can leave the loop at any time: the state is saved, and the next run continues from there.
    """
    processes = find_processes(options.device)
    folder = RunFolder(target.absolute())
    processes.first(lambda: folder.check_target(force=options.force))
    inputs = read_inputs(recipe)
    with ExitStack() as stack:
        processes.first(lambda: stack.enter_context(folder.locked()))
        processes.first(lambda: folder.check_identity(inputs.identity, force=options.force))
        prepared = prepare(inputs, work=folder.path, processes=processes)
        training = start_training(prepared.network, prepared.tasks, settings=recipe.training, processes=processes)
        run = Run(recipe, folder, prepared, training, processes, options, inputs.identity)
        yield run.start()
        yield from run.steps()
        yield run.finish()


@dataclass
class Run:
    """A run in progress."""

    recipe: Recipe
    folder: RunFolder
    prepared: Prepared
    training: Training
    processes: Processes
    options: RunOptions
    identity: dict[str, str]
    progress: Progress = field(default_factory=Progress)
    _saved_step: int = -1

    def __post_init__(self) -> None:
        self.n_steps = n_steps(self.prepared.tasks, self.recipe.training)

    def start(self) -> Started:
        """Load the checkpoint if there is one, else compute the first dev score."""
        if self.folder.checkpoint.is_file():
            saved = load_checkpoint(self.folder.checkpoint, self.training)
            self.progress = _progress(saved.get("progress"), self.folder.checkpoint)
            self._saved_step = self.training.step
        elif self.prepared.dev is not None:
            self.progress.first_score = self._score(self.prepared.dev)
        tasks, dev, first = self.prepared.tasks, self.prepared.dev, self.progress.first_score
        return Started(
            step=self.training.step,
            n_steps=self.n_steps,
            n_rows=sum(len(task.examples) for task in tasks),
            n_texts=sum(len(task.examples.texts) for task in tasks),
            is_packed=self.prepared.network.is_packed,
            first=None if dev is None or first is None else Score(dev.examples.name, dev.protocol, first),
        )

    def steps(self) -> Iterator[StepReport | DevReport]:
        """Train, log, score and save the remaining steps."""
        log = self._open_log()
        try:
            if self._has_patience_ended():
                return
            settings, processes = self.recipe.training, self.processes
            for report in train_steps(self.training, self.prepared.tasks, settings=settings, processes=processes):
                # Score before yielding, so that a caller who stops at a report stops with its score.
                reports = self._after(report, log)
                if report.step % self.options.checkpoint_every == 0:
                    self.save()
                yield from self._saved_if_stopped(reports)
                if self._has_patience_ended():
                    return
        except TrainingError:
            self.save()  # the weights of the last good step
            raise
        finally:
            log.close()

    def _open_log(self) -> StepLog:
        if not self.processes.is_first:
            return StepLog(None)
        log = StepLog(self.folder.log, step=self.training.step or -1)
        if self.training.step == 0 and self.progress.first_score is not None:
            log.add({"step": 0, "dev": self.progress.first_score})
        return log

    def _after(self, report: StepReport, log: StepLog) -> list[StepReport | DevReport]:
        self.progress.seconds += report.seconds
        log.add(asdict(report))
        if not self._is_due(report.step):
            return [report]
        scored = self._score_dev()
        log.add({"step": scored.step, "dev": scored.score})
        return [report, scored]

    def _saved_if_stopped(self, reports: list[StepReport | DevReport]) -> Iterator[StepReport | DevReport]:
        try:
            yield from reports
            if self.processes.is_any(self.options.should_stop()):
                raise KeyboardInterrupt
        except (KeyboardInterrupt, GeneratorExit):
            self.save()
            raise

    def _is_due(self, step: int) -> bool:
        """Whether to compute the dev score after this step."""
        if self.recipe.dev is None:
            return False
        every = self.recipe.dev.every or -(-self.n_steps // N_DEV_SCORES)
        return step % every == 0 or step == self.n_steps

    def _score(self, dev: DevScore) -> float:
        """The score of the first process, shared with all."""
        return self.processes.first(lambda: dev.score(self.prepared.network))

    def _score_dev(self) -> DevReport:
        assert self.prepared.dev is not None
        score, progress = self._score(self.prepared.dev), self.progress
        progress.last_score = score
        is_best = progress.best_score is None or score > progress.best_score
        if is_best:
            progress.best_score, progress.best_step, progress.n_worse = score, self.training.step, 0
            self.processes.first(lambda: save_weights(self.folder.best, self.training))
        else:
            progress.n_worse += 1
        return DevReport(self.training.step, score, is_best)

    @property
    def _keeps_best(self) -> bool:
        return self.recipe.dev is not None and self.recipe.dev.keep == "best"

    def _has_patience_ended(self) -> bool:
        patience = self.recipe.dev.patience if self.recipe.dev else None
        return patience is not None and self.progress.n_worse >= patience

    def save(self) -> None:
        """Save the current state as the checkpoint."""
        if self.processes.is_first and self._saved_step != self.training.step:
            kept = {"identity": self.identity, "progress": asdict(self.progress)}
            save_checkpoint(self.folder.checkpoint, self.training, kept)
            self._saved_step = self.training.step

    def finish(self) -> Finished:
        """Write the model with the weights to keep, its card and its learning curve."""
        return self.processes.first(self._finish)

    def _finish(self) -> Finished:
        self.save()  # in case of an error below
        step = self.training.step
        if self._keeps_best:
            load_weights(self.folder.best, self.training)
            step = self.progress.best_step
        finished = Finished(self.folder.target, step, tuple(self._final_scores()), self.progress.seconds)
        try:
            with new_folder(self.folder.target, MODEL, replace=self.options.force) as path:
                self._write(path, finished)
        except (OSError, SafetensorError) as error:
            raise TrainingError(
                f"Cannot write the model to {self.folder.target}: {error}.",
                hint=f"The run is kept in {self.folder.path}; run the same command again to write the model.",
            ) from error
        self.folder.remove()
        return finished

    def _final_scores(self) -> Iterator[Score]:
        dev = self.prepared.dev
        kept = self.progress.best_score if self._keeps_best else self.progress.last_score
        if dev is not None and kept is not None:
            yield Score(dev.examples.name, dev.protocol, kept)
        for each in self.prepared.test:
            try:
                yield Score(each.examples.name, each.protocol, each.score(self.prepared.network))
            except TrainingError as error:
                logger.warning("%s", error)

    def _write(self, path: Path, finished: Finished) -> None:
        self.prepared.network.write(path, stored=self.recipe.model.stored)
        more = path / "training"
        more.mkdir()
        (more / "recipe.toml").write_text(recipe_as_toml(with_absolute_paths(self.recipe)), encoding="utf-8")
        write_json(more / "identity.json", self.identity)
        (more / "log.jsonl").write_bytes(self.folder.log.read_bytes())
        protocol = self.prepared.dev.protocol if self.prepared.dev else ""
        title = f"{self.training.step:,} steps"
        draw_curve(read_log(self.folder.log), more / "curve.png", title=title, protocol=protocol)
        write_card(path, recipe=self.recipe, finished=finished, first=self.progress.first_score)
