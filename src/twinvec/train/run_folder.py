"""Where a run keeps what it needs until the model is done: ``<target>.run``, beside the model's own folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinvec.errors import InputError, TrainingError
from twinvec.files import is_taken
from twinvec.train.checkpoint import read_progress

__all__ = ["RunFolder"]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths of a run."""

    target: Path

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.target.with_name(f"{self.target.name}.run")

    @property
    def checkpoint(self) -> Path:
        """The state to go on from."""
        return self.path / "checkpoint.safetensors"

    @property
    def best(self) -> Path:
        """The weights of the best dev score so far."""
        return self.path / "best.safetensors"

    @property
    def log(self) -> Path:
        """A line for each step and each score."""
        return self.path / "log.jsonl"

    def check_target(self, *, force: bool) -> None:
        """Refuse, before any work, a target that is taken."""
        if is_taken(self.target) and not force:
            raise InputError(f"{self.target} exists already.", hint="Choose another name, or replace it with --force.")
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file, but the run needs a folder of that name.")

    def open(self, identity: Mapping[str, str], *, force: bool) -> None:
        """Make the folder. Refuse to go on from another run's checkpoint; with ``force``, remove it."""
        self.path.mkdir(parents=True, exist_ok=True)
        found = read_progress(self.checkpoint).get("identity")
        if found is None or found == dict(identity):
            return
        if force:
            for file in (self.checkpoint, self.best, self.log):
                file.unlink(missing_ok=True)
            return
        changed = [name for name in {**found, **identity} if found.get(name) != identity.get(name)]
        raise TrainingError(
            f"{self.path} holds a run that was not finished, of another recipe: its {' and '.join(changed)} differ.",
            hint="Finish it with its own recipe, choose another output, or start over with --force.",
        )

    def remove(self) -> None:
        """Remove the folder, once the model is written."""
        shutil.rmtree(self.path, ignore_errors=True)
