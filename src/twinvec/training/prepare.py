"""Prepare a recipe for the loop: read its files, identify the run, and set up the network of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from twinvec.choices import NetworkKind
from twinvec.data.examples import read_examples
from twinvec.errors import InputError
from twinvec.model.hub import find_model
from twinvec.model.identity import model_digest
from twinvec.training.batches import Task
from twinvec.training.dev_score import DevScore
from twinvec.training.networks.pairs import PairSetup, read_pair_start
from twinvec.training.networks.poly_encoder import PolySetup, poly_start
from twinvec.training.networks.setup import Inputs, Setup, Source, Trainable
from twinvec.training.networks.start import start_folder
from twinvec.training.networks.texts import TextSetup
from twinvec.training.networks.words import WordSetup, read_words
from twinvec.training.processes import Processes
from twinvec.training.recipe import ModelPart, Recipe
from twinvec.training.recipe_file import recipe_as_toml, with_file_names

__all__ = ["NETWORKS", "NetworkType", "Prepared", "prepare", "read_inputs"]


@dataclass(frozen=True)
class NetworkType:
    """How to start a kind of network: read what it starts from, without weights, then set it up.

    ``digest`` identifies the start by its content.
    """

    read_start: Callable[[ModelPart], Source]
    setup: type[Setup]
    digest: Callable[[Path], str] = model_digest


# The objectives of each kind are in `objectives.NETWORK_OBJECTIVES`.
NETWORKS: dict[NetworkKind, NetworkType] = {
    "bi-encoder": NetworkType(start_folder, TextSetup),
    "poly-encoder": NetworkType(poly_start, PolySetup),
    "cross-encoder": NetworkType(read_pair_start, PairSetup),
    "infersent": NetworkType(read_words, WordSetup),
    "dan": NetworkType(read_words, WordSetup),
}


@dataclass(frozen=True)
class Prepared:
    """The network, training tasks, and dev and test scores of a run."""

    network: Trainable
    tasks: tuple[Task, ...]
    dev: DevScore | None
    test: tuple[DevScore, ...]


def read_inputs(recipe: Recipe) -> Inputs:
    """Read all files of a recipe except weights, so that errors in them appear early."""
    kind = _network_type(recipe.model.network)
    start = kind.read_start(recipe.model)
    data = tuple(read_examples(part.source) for part in recipe.data)
    dev = read_examples(recipe.dev.source) if recipe.dev else None
    # Test data do not affect the result.
    named = {"recipe": recipe_as_toml(with_file_names(replace(recipe, test=())))}
    named["start model"] = kind.digest(start.path)
    teachers = dict.fromkeys(teacher for part in recipe.data for teacher in part.teachers)
    named |= {f"teacher {Path(name).name}": model_digest(find_model(name)) for name in teachers}
    miners = dict.fromkeys(part.miner for part in recipe.data if part.is_mined)
    named |= {f"miner {Path(name).name}": model_digest(find_model(name)) for name in miners}
    read = [*data, *([dev] if dev else [])]
    named |= {f"data {index} ({each.name})": each.digest() for index, each in enumerate(read, start=1)}
    return Inputs(recipe, start, data, dev, tuple(read_examples(source) for source in recipe.test), named)


def _network_type(kind: NetworkKind) -> NetworkType:
    if kind not in NETWORKS:
        raise InputError(f"A {kind} cannot be trained yet.", hint=f"Choose from: {', '.join(NETWORKS)}.")
    return NETWORKS[kind]


def prepare(inputs: Inputs, *, work: Path, processes: Processes) -> Prepared:
    """Set up the network. The folder ``work`` caches the pruned start model and the teachers' vectors."""
    setup = _network_type(inputs.recipe.model.network).setup(inputs, work=work, processes=processes)
    return Prepared(
        network=setup.network,
        tasks=tuple(setup.task(index) for index in range(len(inputs.data))),
        dev=setup.dev_score(inputs.dev) if inputs.dev else None,
        test=tuple(setup.dev_score(examples) for examples in inputs.test),
    )
