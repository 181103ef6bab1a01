"""The files of an unfinished run: the run folder, checkpoints, and the step log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    "PROJECTION",
    "START",
    "RunFolder",
    "StepLog",
    "check_model_target",
    "load_checkpoint",
    "load_weights",
    "read_log",
    "save_checkpoint",
    "save_weights",
]

PROGRESS = "progress"  # the metadata key of everything but tensors


def save_checkpoint(path: Path, training: Training, progress: Mapping[str, object]) -> None:
    """Replace the checkpoint at ``path``. ``progress`` is the other state of the run, stored as JSON."""
    tensors = {f"network.{name}": values for name, values in training.network.state_dict().items()}
    tensors |= {f"objectives.{name}": values for name, values in training.objectives.state_dict().items()}
    for index, parameter in enumerate(training.parameters()):
        state = training.optimizer.state.get(parameter, {})
        tensors |= {f"optimizer.{index}.{name}": values for name, values in state.items()}
    _write(path, tensors, dict(progress) | {"step": training.step})


def load_checkpoint(path: Path, training: Training) -> dict[str, Any]:
    """Load a checkpoint into ``training``; return the progress that was saved with it."""
    tensors, progress = _read(path)
    step = progress.get("step")
    if not isinstance(step, int) or step < 0:
        raise _damaged(path, f"its step is {step!r:.40}")
    _load(path, training.network, _part(tensors, "network."))
    _load(path, training.objectives, _part(tensors, "objectives."))
    training.step = step
    for index, parameter in enumerate(training.parameters()):
        state = _part(tensors, f"optimizer.{index}.")
        if state:
            training.optimizer.state[parameter] = {name: each.to(parameter.device) for name, each in state.items()}
    return progress


def save_weights(path: Path, training: Training) -> None:
    """Write only the weights of the network."""
    _write(path, training.network.state_dict(), {"step": training.step})


def load_weights(path: Path, training: Training) -> None:
    """Load weights written by ``save_weights`` into the network."""
    _load(path, training.network, _read(path)[0])


def read_progress(path: Path) -> dict[str, Any]:
    """The progress saved in a checkpoint; empty without a checkpoint."""
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
            # Cloned, because a tensor is a view of the file, which the next checkpoint replaces.
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
    return TrainingError(f"{path} is not a valid checkpoint: {reason}.", hint="Start over with --force, or restore it.")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): values for name, values in tensors.items() if name.startswith(prefix)}


logger = logging.getLogger(__name__)

LOCK = "lock"
START, PROJECTION = "start", "projection"
_FILES = r"identity\.json|checkpoint\.safetensors|best\.safetensors|log\.jsonl|teacher-[0-9a-f]{16}\.npy"
KIND = FolderKind(
    "twinvec-run-1",
    "a training run",
    names=re.compile(rf"{LOCK}|{PROJECTION}/[\w.]+|{_FILES}|\.(?:{_FILES})\.partial.*|\.{START}\.partial.*", re.DOTALL),
    nested={START: MODEL},
)


class RunFolder:
    """The folder ``path`` of a run and its files.

    ``identity`` identifies the recipe, model and data of the run, ``checkpoint`` is the state to continue from,
    ``best`` has the weights of the best dev score, and ``log`` is the step log.
    """

    def __init__(self, target: Path) -> None:
        self.target, self.path = target, target.with_name(f"{target.name}.run")
        self.identity, self.log = self.path / "identity.json", self.path / "log.jsonl"
        self.checkpoint, self.best = self.path / "checkpoint.safetensors", self.path / "best.safetensors"

    def check_target(self, *, force: bool) -> None:
        """Refuse a target that exists or is not writable, and a foreign run folder, before any work."""
        check_model_target(self.target, force=force)
        check_path(self.path)
        check_ours(self.path, KIND)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not any(self.path.iterdir()):
                self.path.rmdir()  # leave nothing behind if the data turn out to be invalid
        except OSError as error:
            raise InputError(f"Cannot create the folder {self.path}: {error.strerror}.") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create and lock the folder; the operating system releases the lock when the process ends."""
        mark(self.path, KIND)
        with (self.path / LOCK).open("ab") as file:
            if not try_lock(file.fileno()):
                raise InputError(f"Another process is training in {self.path}.", hint="Wait for it, or stop it.")
            yield

    def check_identity(self, identity: Mapping[str, str], *, force: bool) -> None:
        """Make sure that the folder belongs to this run: its start model, teacher vectors and checkpoint.

        Files of another recipe are removed with ``force``, or if they have no checkpoint; otherwise they are refused.
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
        """The identity stored in the folder; None if ``force`` discards an unreadable one."""
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
            logger.warning("%s holds files that do not belong to the run; they are kept.", self.path)


def check_model_target(target: Path, *, force: bool) -> None:
    """Refuse an existing target; with ``force``, refuse anything but a model that Twinvec wrote."""
    if is_taken(target) and not force:
        raise InputError(f"{target} already exists.", hint="Choose another name, or overwrite it with --force.")
    check_free(target, MODEL, replace=force)


def differences(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Describe the differences between two identities; for the recipe, the changed lines.

    >>> differences({"recipe": "epochs = 1", "start model": "a"}, {"recipe": "epochs = 2", "start model": "a"})
    'it has epochs = 1 instead of epochs = 2'
    """
    changed = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    if changed != ["recipe"]:
        return f"its {' and its '.join(name for name in changed if name != 'recipe')} changed"
    old, new = (text["recipe"].splitlines() for text in (found, wanted))
    removed, added = ([line for line in one if line not in other] for one, other in ((old, new), (new, old)))
    return f"it has {', '.join(removed) or 'nothing'} instead of {', '.join(added) or 'nothing'}"


class StepLog:
    """Appends rows to a log file, after removing rows beyond ``step`` of an interrupted run.

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
    """All complete rows of a log; an incomplete last line is ignored."""
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
    return InputError(f"{path} is not a valid log.", hint="Start over with --force, or restore it.")


def _line(row: Mapping[str, object]) -> bytes:
    return (json.dumps(row) + "\n").encode()
