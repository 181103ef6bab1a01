"""What the loop needs of a network, and what a kind of network makes from a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from twinvec.choices import StoredPrecision
from twinvec.data.examples import Examples
from twinvec.training.batches import Task
from twinvec.training.dev_score import DevScore
from twinvec.training.processes import Processes
from twinvec.training.recipe import Recipe
from twinvec.types import Ids

__all__ = ["Inputs", "Setup", "Source", "Trainable"]


class Trainable(Protocol):
    """An ``nn.Module`` that the loop can train: rows of inputs in, one row of ``width`` numbers for each out."""

    is_packed: bool  # whether rows are computed without padding
    width: int

    def __call__(self, rows: Sequence[Any]) -> Tensor:
        """The outputs of some rows, ``(rows, width)``, in float32."""
        ...

    def train_only(self, used: Ids) -> None:
        """Train only these rows of the embedding table, if it has one."""
        ...

    def write(self, path: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model to ``path``, an existing empty folder."""
        ...

    # of nn.Module
    def parameters(self) -> Iterator[nn.Parameter]: ...  # noqa: D102
    def state_dict(self) -> Mapping[str, Tensor]: ...  # noqa: D102
    def to(self, device: str) -> object: ...  # noqa: D102
    def train(self, mode: bool = True) -> object: ...  # noqa: D102
    def zero_grad(self, set_to_none: bool = True) -> None: ...  # noqa: D102


class Source(Protocol):
    """What training starts from: a model folder, or another one with a path."""

    @property
    def path(self) -> Path:
        """The folder or file."""
        ...


@dataclass(frozen=True)
class Inputs:
    """The start model and data of a recipe. ``identity`` covers everything that the result depends on."""

    recipe: Recipe
    start: Any  # what `read_start` of the kind of network returned, a Source
    data: tuple[Examples, ...]
    dev: Examples | None
    test: tuple[Examples, ...]
    identity: dict[str, str]


class Setup(Protocol):
    """A network made from a recipe, with its training tasks and dev scores."""

    @property
    def network(self) -> Trainable:
        """The network to train."""
        ...

    def __init__(self, inputs: Inputs, *, work: Path, processes: Processes) -> None:
        """Load the network and tokenize the data. ``work`` caches what is slow to compute."""
        ...

    def task(self, index: int) -> Task:
        """The training task of data set ``index`` of the recipe."""
        ...

    def dev_score(self, examples: Examples) -> DevScore:
        """The score on held-out examples."""
        ...
