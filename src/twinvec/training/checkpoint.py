"""What a run keeps on disk until its model is done: the run folder, checkpoints, and the step log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from twinvec.errors import InputError, TrainingError, TwinvecError
from twinvec.files import check_free, check_path, is_taken, new_file, read_json, try_lock
from twinvec.ownership import MODEL, FolderKind, check_ours, mark, remove_ours
from twinvec.training.loop import Training

__all__ = [
    "RunFolder",
    "StepLog",
    "check_model_target",
    "load_checkpoint",
    "load_weights",
    "read_log",
    "read_progress",
    "save_checkpoint",
    "save_weights",
]

PROGRESS = "progress"  # the key of what is no tensor


def save_checkpoint(path: Path, training: Training, progress: Mapping[str, object]) -> None:
    """Replace the checkpoint at ``path``. ``progress`` is whatever else the run must remember, as JSON."""
    tensors = {f"network.{name}": values for name, values in training.network.state_dict().items()}
    tensors |= {f"objectives.{name}": values for name, values in training.objectives.state_dict().items()}
    for index, parameter in enumerate(training.parameters()):
        state = training.optimizer.state.get(parameter, {})
        tensors |= {f"optimizer.{index}.{name}": values for name, values in state.items()}
    _write(path, tensors, dict(progress) | {"step": training.step})


def load_checkpoint(path: Path, training: Training) -> dict[str, Any]:
    """Put the state of the checkpoint into ``training``; returns the progress that was saved with it."""
    tensors, progress = _read(path)
    step = progress.get("step")
    if not isinstance(step, int) or step < 0:
        raise _damaged(path, f"it says that it is of step {step!r:.40}")
    _load(path, training.network, _part(tensors, "network."))
    _load(path, training.objectives, _part(tensors, "objectives."))
    training.step = step
    for index, parameter in enumerate(training.parameters()):
        state = _part(tensors, f"optimizer.{index}.")
        if state:
            training.optimizer.state[parameter] = {name: each.to(parameter.device) for name, each in state.items()}
    return progress


def save_weights(path: Path, training: Training) -> None:
    """Write the network's weights alone."""
    _write(path, training.network.state_dict(), {"step": training.step})


def load_weights(path: Path, training: Training) -> None:
    """Put weights that were saved alone into the network."""
    _load(path, training.network, _read(path)[0])


def read_progress(path: Path) -> dict[str, Any]:
    """What was saved beside the tensors; empty if there is no checkpoint."""
    return _read(path, with_tensors=False)[1] if path.is_file() else {}


def _write(path: Path, tensors: Mapping[str, Tensor], progress: Mapping[str, object]) -> None:
    whole = {name: values.detach().cpu().contiguous() for name, values in tensors.items()}
    with new_file(path, replace=True) as file:
        file.write(save(whole, metadata={PROGRESS: json.dumps(progress)}))


def _read(path: Path, *, with_tensors: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            progress = json.loads((file.metadata() or {})[PROGRESS])
            names = file.keys() if with_tensors else []
            # Copied: what is given is a view of the file, which the next checkpoint replaces.
            tensors = {name: file.get_tensor(name).clone() for name in names}
    except (SafetensorError, KeyError, ValueError, OSError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(progress, dict):
        raise _damaged(path, f"its progress is a {type(progress).__name__}")
    return tensors, progress


def _load(path: Path, module: nn.Module, tensors: dict[str, Tensor]) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:  # other names or shapes
        raise _damaged(path, str(error).splitlines()[0]) from error


def _damaged(path: Path, reason: str) -> TrainingError:
    return TrainingError(
        f"{path} is no checkpoint of Twinvec: {reason}.", hint="Start over with --force, or restore it."
    )


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): values for name, values in tensors.items() if name.startswith(prefix)}


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


class StepLog:
    """Appends rows to a file; what was written after ``step`` by a run that was cut off is dropped first.

    Without a path, nothing is written.
    """

    def __init__(self, path: Path | None, *, step: int = 0) -> None:
        self._file: IO[bytes] | None = None
        if path is None:
            return
        rows = [row for row in read_log(path) if int(row["step"]) <= step]
        with new_file(path, replace=True) as file:
            file.writelines(_line(row) for row in rows)
        self._file = path.open("ab")

    def add(self, row: Mapping[str, object]) -> None:
        """Write one row; it must have a ``step``."""
        if self._file is None:
            return
        try:
            self._file.write(_line(row))
            self._file.flush()
        except OSError as error:
            raise InputError(f"Cannot write {self._file.name}: {error.strerror or error}.") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All whole rows of a log; a last line that was cut off is no row."""
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    try:
        rows = [json.loads(line) for line in lines[:-1]]
    except (ValueError, RecursionError) as error:
        raise _damaged_log(path) from error
    if not all(isinstance(row, dict) and isinstance(row.get("step"), int) for row in rows):
        raise _damaged_log(path)
    return rows


def _damaged_log(path: Path) -> InputError:
    return InputError(f"{path} is not the log of a run.", hint="Start over with --force, or restore it.")


def _line(row: Mapping[str, object]) -> bytes:
    return (json.dumps(row) + "\n").encode()
