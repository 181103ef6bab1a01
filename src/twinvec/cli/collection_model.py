"""Which model a command uses for a collection: the one it remembers, unless the user names another."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from twinvec.cli.options import ModelChoice

if TYPE_CHECKING:
    from twinvec.collection import Embedder, ModelRecord

__all__ = ["chosen_embedder", "given_embedder"]


def chosen_embedder(model: ModelChoice) -> Embedder:
    """The model of the options, for a new collection."""
    from twinvec.collection.embedder import load_embedder

    settings: dict[str, Any] = asdict(model)
    return load_embedder(settings.pop("name"), settings)


def given_embedder(model: ModelChoice, record: ModelRecord, place: str) -> Embedder | None:
    """The remembered model with what stands in the command line, loaded; None if nothing about it stands there.

    A model is fetched only if its name stands there: the word of a collection is not enough. The variable for the model
    does not count: it says which one to take, not to change one.
    """
    from twinvec.collection.embedder import load_embedder, load_remembered

    context = click.get_current_context()
    given: dict[str, Any] = {
        name: value
        for name, value in asdict(model).items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if not given:
        return None
    if "name" not in given:
        return load_remembered(record, place, given)
    return load_embedder(given.pop("name"), given)
