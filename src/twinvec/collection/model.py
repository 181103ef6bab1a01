"""The model of a collection: its identity by content, and how it embeds.

A collection may come from someone else, so its record of a model is not trusted: it can name a model on this machine
and its readout, but it cannot start a download or read a pickle. Only the caller can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from shlex import quote
from types import NoneType
from typing import Any, get_args

import numpy as np

from twinvec.choices import POOLINGS, LongPolicy, Precision, Role, UnknownPolicy
from twinvec.embedder import (
    Embedder,
    ModelEmbedder,
    ModelLike,
    arguments_of,
    as_embedder,
    is_address,
    readout_words,
    stable_name,
    width_of,
)
from twinvec.errors import CollectionError, InputError, ModelNotFoundError, TwinvecError, shown
from twinvec.model.folder import EMBEDDER_FILE, embedder_kind, read_model_folder, with_readout
from twinvec.model.hub import find_model
from twinvec.model.identity import space_digest
from twinvec.types import Vectors
from twinvec.vectors import checked_vectors
from twinvec.wk import WKSettings

__all__ = [
    "LOADED_WITH_ARGUMENTS",
    "CollectionModel",
    "ModelRecord",
    "as_model",
    "model_mismatch",
    "recorded_model",
    "requested_model",
]

LOADED_WITH_ARGUMENTS = "A loaded model does not take arguments."

METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}  # our names to Lance's
MAX_WIDTH = 2**31 - 1
NETWORK_PATHS = ("//", "\\\\")  # paths that Windows opens on other machines
# a folder without any of them is not a model, so its files are not hashed
MODEL_MARKS = ("modules.json", "config.json", EMBEDDER_FILE)

# arguments of ``load`` that a collection stores, with a check of each; all allowed values are harmless
SETTINGS: dict[str, Callable[[object], bool]] = {
    "precision": lambda value: value in get_args(Precision),
    "long": lambda value: value in get_args(LongPolicy),
    "unknown": lambda value: value in get_args(UnknownPolicy),
    "truncate_dim": lambda value: value is None or _is_count(value),
    "readout": lambda value: _is_readout(value),
}


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The record of a collection's model. ``digest`` covers everything that determines its vectors.

    ``name`` and ``settings`` are arguments of :func:`twinvec.load`; the settings are precision, long, unknown,
    truncate_dim and readout only.
    """

    name: str
    digest: str
    width: int
    similarity: str = "cosine"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("name", self.name), ("digest", self.digest)):
            if not isinstance(value, str) or not value:
                raise InputError(f"The {name} of a model is {shown(value)}, not a non-empty string.")
        if not _is_count(self.width):
            raise InputError(
                f"The width of the model {self.name!r} is {shown(self.width)}, not a positive whole number."
            )
        if not isinstance(self.similarity, str) or self.similarity not in METRICS:
            raise InputError(
                f"The model {self.name!r} uses the similarity {self.similarity}, which a collection cannot search.",
                hint=f"Use a model with one of: {', '.join(METRICS)}.",
            )
        _check_settings(self.settings)

    @property
    def metric(self) -> str:
        """Lance's name of the distance."""
        return METRICS[self.similarity]


def _check_settings(settings: object) -> None:
    if not isinstance(settings, Mapping):
        raise InputError(f"The settings of a model are {shown(settings)}, not a dict.")
    for name, value in settings.items():
        if name not in SETTINGS:
            raise InputError(
                f"The settings of a model contain {shown(name)}, which a collection cannot set.",
                hint=f"It can set: {', '.join(SETTINGS)}. Only the caller can set anything else.",
            )
        if not SETTINGS[name](value):
            raise InputError(f"The settings of a model contain {name} = {shown(value)}, which is not a valid value.")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_WIDTH


def _is_readout(value: object) -> bool:
    """Whether a value is "wk", pooling names joined by "+", or SBERT-WK settings as a dict."""
    if isinstance(value, str):
        return value == "wk" or all(name in POOLINGS for name in value.split("+"))
    try:
        return isinstance(value, dict) and bool(WKSettings(**value))
    except (TypeError, TwinvecError):
        return False


@dataclass(frozen=True, slots=True)
class CollectionModel:
    """The embedder of a collection, and its record in the collection."""

    record: ModelRecord
    embedder: Embedder = field(repr=False)

    def documents(self, texts: list[str]) -> Vectors:
        """Embed texts to store, ``(n, width)``."""
        return self._embed(texts, "document")

    def query(self, text: str) -> Vectors:
        """Embed a query, ``(width,)``."""
        return np.asarray(self._embed([text], "query")[0])

    def _embed(self, texts: list[str], role: Role) -> Vectors:
        vectors = self.embedder.embed(texts, role=role)
        return checked_vectors(vectors, texts, width=self.record.width, source=self.record.name)


def as_model(model: ModelLike | Embedder, arguments: Mapping[str, Any] | None = None) -> CollectionModel:
    """A model that the caller names or has built; ``arguments`` are those of :func:`twinvec.load`."""
    embedder = as_embedder(model, arguments)
    if isinstance(embedder, ModelEmbedder):
        is_folder = Path(embedder.model).expanduser().is_dir()
        record = _record(embedder, stable_name(embedder.folder) if is_folder else embedder.model)
    else:
        record = _other_record(embedder)
    return CollectionModel(record, embedder)


def _other_record(embedder: Embedder, name: str | None = None) -> ModelRecord:
    """The record of an embedder that is not a sentence model.

    Its name is its folder or its address, if it has one. A server states the vector space of its model, so that the
    collection can also be searched with the model itself.
    """
    folder = getattr(embedder, "folder", None)
    if name is None and isinstance(folder, Path) and embedder_kind(folder):
        name = str(folder.absolute())
    elif name is None:
        name = str(getattr(embedder, "address", embedder.name))
    digest = getattr(embedder, "space", None) or embedder.identity
    return ModelRecord(name, digest, width_of(embedder), embedder.similarity)


def _record(embedder: ModelEmbedder, name: str) -> ModelRecord:
    encoder = embedder.encoder
    settings = {key: value for key, value in arguments_of(encoder).items() if key in SETTINGS}
    if isinstance(settings.get("readout"), WKSettings):
        settings["readout"] = asdict(settings["readout"])
    return ModelRecord(name, embedder.space, encoder.width, embedder.similarity, settings)


def requested_model(
    record: ModelRecord, path: str, model: ModelLike | Embedder | None, arguments: Mapping[str, Any] | None
) -> CollectionModel | None:
    """Load the model that the caller requests for the collection at ``path``; None if the caller requests nothing.

    Without ``model``, ``arguments`` of :func:`twinvec.load` change how the recorded model runs. A model is downloaded
    only if the caller names it; the record of a collection is not enough.
    """
    if arguments and not isinstance(model, (str, PathLike, NoneType)):
        raise InputError(LOADED_WITH_ARGUMENTS, hint="Use its name or folder together with arguments.")
    if model is not None:
        return as_model(model, arguments)
    return recorded_model(record, path, arguments) if arguments else None


def recorded_model(record: ModelRecord, path: str, overrides: Mapping[str, Any] | None = None) -> CollectionModel:
    """Load the model that the collection at ``path`` names, if it is on this machine and its content matches.

    The content is compared before any weights are read. ``overrides`` are the caller's arguments of
    :func:`twinvec.load`; they take precedence over the recorded settings.
    """
    folder = _local_folder(record, path)
    arguments = {**record.settings, **(overrides or {})}
    if embedder_kind(folder) is not None:
        baseline = as_embedder(folder, arguments)
        if _other_record(baseline, record.name) != record:
            raise model_mismatch(path, record, record.name)
        return CollectionModel(record, baseline)
    embedder = ModelEmbedder(folder, arguments).find()
    embedder.model = record.name
    own = read_model_folder(folder)
    if "readout" in record.settings:
        own = with_readout(own, ModelEmbedder(folder, record.settings).arguments["readout"])
    space = space_digest(embedder.content, readout_words(own), record.width)
    if space != record.digest or own.similarity != record.similarity:
        raise model_mismatch(path, record, record.name)
    return CollectionModel(_record(embedder, record.name), embedder)


def _local_folder(record: ModelRecord, path: str) -> Path:
    """The folder of the model that a collection names; nothing is downloaded."""
    name, folder = record.name, None
    try:
        if not name.startswith(NETWORK_PATHS):
            folder = find_model(name, offline=True)
    except (ModelNotFoundError, OSError, RuntimeError, ValueError):  # the last three: names that no file can have
        pass
    if folder is not None and any((folder / mark).is_file() for mark in MODEL_MARKS):
        return folder
    if is_address(name):
        raise ModelNotFoundError(
            f"{path} was created with a model behind the server {name!r:.200}.",
            hint="A collection cannot open a connection. If you trust the address, pass it: --model, or "
            "Collection.open(path, model=...).",
        )
    raise ModelNotFoundError(
        f"{path} was created with the model {name!r:.200}, which is not on this machine.",
        hint="A collection cannot start a download. If you trust the name, download the model once with twinvec "
        "inspect, or name it: --model, or Collection.open(path, model=...). If it has moved, name its folder the same "
        "way.",
    )


def model_mismatch(path: str, own: ModelRecord, name: str) -> CollectionError:
    """The error for a model that is not the collection's own."""
    problem = f"{path} was created with the model {own.name!r}, not with {name!r}."
    if own.name == name:
        problem = f"{path} was created with another model named {name!r}: the files or settings differ."
    return CollectionError(
        problem,
        hint=f"Use the original model, or embed all texts again: Collection.open(path).reindex(model={name!r}), or "
        f"twinvec index with --re-embed -m {quote(name)}.",
    )
