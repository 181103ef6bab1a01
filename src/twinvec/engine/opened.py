"""A model opened in a runtime. Importing this brings no runtime along."""

from __future__ import annotations

from dataclasses import dataclass

from twinvec.types import Precision, Runtime

__all__ = ["Engine"]


@dataclass(frozen=True)
class Engine:
    """A runtime with a model in it, and what its callers must know of that model."""

    runtime: Runtime
    precision: Precision
    width: int
    n_vocabulary: int
    n_positions: int | None
