"""How to run an encoder. Says nothing about which encoder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, get_args

from twinvec.errors import InputError, UnknownNameError
from twinvec.types import Device, LongPolicy, Precision, RuntimeName

__all__ = ["EngineSettings"]

TOKENS_PER_BATCH = {"cpu": 512, "cuda": 16_384}  # 512 keep a batch's activations in a core's cache


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Checked once, here; everything below trusts it."""

    precision: Precision = "float32"
    threads: int | None = None
    device: Device = "cpu"
    runtime: RuntimeName = "auto"
    deterministic: bool = False
    long: LongPolicy = "warn"

    def __post_init__(self) -> None:
        choices: dict[str, tuple[Any, object]] = {
            "precision": (Precision, self.precision),
            "device": (Device, self.device),
            "runtime": (RuntimeName, self.runtime),
            "long": (LongPolicy, self.long),
        }
        for name, (known, value) in choices.items():
            if value not in get_args(known):
                raise UnknownNameError(name, value, get_args(known))
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise InputError(f"threads must be a whole number of at least 1, got {self.threads!r}.")
        if self.device == "cuda" and self.precision != "float32":
            raise InputError(f"precision={self.precision!r} runs on the CPU only.", hint="Use precision='float32'.")

    @property
    def n_streams(self) -> int:
        """How many batches run at once."""
        return 1 if self.device == "cuda" else self.threads or usable_cores()

    @property
    def tokens_per_batch(self) -> int:
        """The most tokens a batch holds, padding included."""
        return TOKENS_PER_BATCH[self.device]


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
