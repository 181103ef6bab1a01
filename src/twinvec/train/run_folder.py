"""Where a run keeps what it needs until the model is done: ``<target>.run``, beside the model's own folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from twinvec.errors import InputError, TrainingError
from twinvec.files import is_taken, try_lock
from twinvec.train.checkpoint import read_progress

__all__ = ["RunFolder", "check_model_target"]


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
        """Refuse, before any work, a target that is taken or cannot be written."""
        check_model_target(self.target, force=force)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not any(self.path.iterdir()):
                self.path.rmdir()  # nothing is left behind if the data turn out to be bad
        except OSError as error:
            raise InputError(f"Cannot make the folder {self.path}: {error.strerror}.") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other runs out of it; the system lifts the lock when the process ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("ab") as file:
            if not try_lock(file.fileno()):
                raise InputError(f"Another process is training in {self.path}.", hint="Wait for it, or stop it.")
            yield

    def check_identity(self, identity: Mapping[str, str], *, force: bool) -> None:
        """Refuse to go on from another run's checkpoint; with ``force``, remove it."""
        found = read_progress(self.checkpoint).get("identity")
        if found is None or found == dict(identity):
            return
        if force:
            for file in (self.checkpoint, self.best, self.log):
                file.unlink(missing_ok=True)
            return
        raise TrainingError(
            f"{self.path} holds an unfinished run of another recipe: {differences(found, identity)}.",
            hint="Finish it with its own recipe, choose another output, or start over with --force.",
        )

    def remove(self) -> None:
        """Remove the folder, once the model is written."""
        shutil.rmtree(self.path, ignore_errors=True)


def check_model_target(target: Path, *, force: bool) -> None:
    """Refuse to write over what is there; with ``force``, over anything that is no model."""
    if not is_taken(target):
        return
    if not force:
        raise InputError(f"{target} exists already.", hint="Choose another name, or replace it with --force.")
    if not (target / "config.json").is_file():
        raise InputError(f"{target} is no model, so it is not replaced.", hint="Choose another name, or remove it.")


def differences(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """What differs between two identities, in words; of the recipe, the lines.

    >>> differences({"recipe": "epochs = 1", "start model": "a"}, {"recipe": "epochs = 2", "start model": "a"})
    'it has epochs = 1 instead of epochs = 2'
    """
    changed = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    if changed != ["recipe"]:
        return f"its {' and its '.join(name for name in changed if name != 'recipe')} changed"
    old, new = (text["recipe"].splitlines() for text in (found, wanted))
    gone, come = ([line for line in one if line not in other] for one, other in ((old, new), (new, old)))
    return f"it has {', '.join(gone) or 'nothing'} instead of {', '.join(come) or 'nothing'}"
