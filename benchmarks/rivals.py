"""Shared by benchmarks: sentence-transformers with each of its backends and exports, at its fastest batch size."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import machine
from numpy.typing import NDArray

RIVAL = "sentence-transformers (torch)"
BATCH_SIZES = 16, 32, 64, 128, 256  # as in the rival's own benchmark of MiniLM
ONNX_CONFIGURATIONS = {"avx512_vnni": "avx512_vnni", "avx512f": "avx512"}  # CPU flag -> the rival's name
Run = Callable[[], NDArray[np.float32]]
Make = Callable[[Path], Any]
RunAt = Callable[[Any, int], NDArray[np.float32]]


class Rivals(NamedTuple):
    """The rivals that run here with their fastest batch sizes, and the errors of the others."""

    runs: dict[str, Run]
    batch_sizes: dict[str, int]
    errors: dict[str, str]


def onnx_configuration() -> str:
    """The rival's configuration of dynamic int8 for this CPU."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return "arm64"
    abilities = machine()["abilities"]
    return next((name for flag, name in ONNX_CONFIGURATIONS.items() if flag in abilities), "avx2")


def best_batch_size(rival: object, tune: RunAt) -> int:
    """The rival's fastest batch size, by the better of two runs after a warm-up."""

    def seconds(size: int) -> float:
        started = time.perf_counter()
        tune(rival, size)
        return time.perf_counter() - started

    return min(BATCH_SIZES, key=lambda size: min([seconds(size) for _ in range(3)][1:]))


def made_rivals(model: Path, makers: Mapping[str, Make], tune: RunAt, run: RunAt) -> Rivals:
    """Make each rival in a folder of its own; ``tune`` and ``run`` run it at a batch size, on a sample and in full."""
    made = Rivals({}, {}, {})
    for backend, make in makers.items():
        name = f"sentence-transformers ({backend})"
        try:
            with tempfile.TemporaryDirectory() as folder:
                # a copy of symbolic links: the export must not write into the model folder
                for file in model.iterdir():
                    (Path(folder) / file.name).symlink_to(file.resolve())
                rival = make(Path(folder))
                size = best_batch_size(rival, tune)
        except Exception as error:
            made.errors[name] = f"{type(error).__name__}: {error!s:.200}"
            print(f"{name} does not run here: {made.errors[name]}")
            continue
        made.batch_sizes[name] = size
        made.runs[name] = lambda rival=rival, size=size: run(rival, size)  # type: ignore[misc]
    return made
