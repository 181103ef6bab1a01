"""A run's state in one file, replaced in one move: a kill at any moment leaves the old one or the new one.

Held are weights, the optimizer's moments and the step. The order of the data and all that is drawn follow from seed and
step, so there is no other state to save.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from twinvec.errors import TrainingError
from twinvec.tables import new_file
from twinvec.train.loop import Training

__all__ = ["load_checkpoint", "load_weights", "read_progress", "save_checkpoint", "save_weights"]

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
