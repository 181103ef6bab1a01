"""Where a run keeps what it needs until the model is done: ``<target>.run``, beside the model's own folder."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from twinvec.errors import InputError, TrainingError, TwinvecError
from twinvec.files import check_free, check_path, is_taken, read_json, try_lock
from twinvec.ownership import MODEL, FolderKind, check_ours, mark, remove_ours
from twinvec.tables import new_file
from twinvec.train.checkpoint import read_progress

__all__ = ["RunFolder", "check_model_target"]

logger = logging.getLogger(__name__)

LOCK = "lock"
START = "start"
_FILES = r"identity\.json|checkpoint\.safetensors|best\.safetensors|log\.jsonl|teacher-[0-9a-f]{16}\.npy"
KIND = FolderKind(
    "twinvec-run-1",
    "a training run",
    names=re.compile(rf"{LOCK}|{_FILES}|\.(?:{_FILES})\.partial.*|\.{START}\.partial.*", re.DOTALL),
    nested={START: MODEL},
)


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

    @property
    def identity(self) -> Path:
        """What all the rest was made for."""
        return self.path / "identity.json"

    def check_target(self, *, force: bool) -> None:
        """Refuse, before any work, a target that is taken or cannot be written, and a run folder that is not ours."""
        check_model_target(self.target, force=force)
        check_path(self.path)
        check_ours(self.path, KIND)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not any(self.path.iterdir()):
                self.path.rmdir()  # nothing is left behind if the data turn out to be bad
        except OSError as error:
            raise InputError(f"Cannot make the folder {self.path}: {error.strerror}.") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other runs out of it; the system lifts the lock when the process ends."""
        mark(self.path, KIND)
        with (self.path / LOCK).open("ab") as file:
            if not try_lock(file.fileno()):
                raise InputError(f"Another process is training in {self.path}.", hint="Wait for it, or stop it.")
            yield

    def check_identity(self, identity: Mapping[str, str], *, force: bool) -> None:
        """Make the folder this run's: the start model, the vectors of teachers and the checkpoint in it are its own.

        What another recipe has left is removed with ``force``, or if no step of it was saved; otherwise it is refused.
        """
        found = self._found_identity(force=force)
        if found == dict(identity):
            return
        if found is not None and not force and self.checkpoint.exists():
            raise TrainingError(
                f"{self.path} holds an unfinished run of another recipe: {differences(found, identity)}.",
                hint="Finish it with its own recipe, choose another output, or start over with --force.",
            )
        check_ours(self.path, KIND)
        remove_ours(self.path, KIND, keep=[LOCK])
        with new_file(self.identity, replace=True) as file:
            file.write(json.dumps(dict(identity), indent=1).encode())

    def _found_identity(self, *, force: bool) -> dict[str, str] | None:
        """What the folder's content was made for; None if nothing is there, or what is there is to go."""
        try:
            found = read_json(self.identity)
            saved = read_progress(self.checkpoint).get("identity", found)
        except TwinvecError:
            if force:
                return None
            raise
        if not found and self.checkpoint.exists():
            return {"recipe": ""}
        return found if saved == found else {**found, "checkpoint": "of another run"}

    def remove(self) -> None:
        """Remove the folder, once the model is written."""
        try:
            is_gone = remove_ours(self.path, KIND)
        except OSError:
            is_gone = False
        if not is_gone:
            logger.warning("%s holds files that are not of the run; they are kept there.", self.path)


def check_model_target(target: Path, *, force: bool) -> None:
    """Refuse to write over what is there; with ``force``, over anything that is not a model that we wrote."""
    if is_taken(target) and not force:
        raise InputError(f"{target} exists already.", hint="Choose another name, or replace it with --force.")
    check_free(target, MODEL, replace=force)


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
