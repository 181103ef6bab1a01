"""A model as a collection sees it: what it is, by its content, and how it embeds.

A collection may have been made by others. What it says of its model is checked here: it can name one that is on this
machine and say how to read it out, but it cannot have anything fetched, or a pickle read. The caller can.
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

from twinvec.choices import POOLINGS, LongPolicy, Precision
from twinvec.embedder import (
    Embedder,
    ModelEmbedder,
    ModelLike,
    arguments_of,
    as_embedder,
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

__all__ = ["CollectionModel", "ModelRecord", "another_model", "as_model", "given_model", "remembered_model"]

METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}  # ours to Lance's
WIDEST = 2**31 - 1
NETWORK_PATHS = ("//", "\\\\")  # where Windows looks on other machines
MODEL_MARKS = (
    "modules.json",
    "config.json",
    EMBEDDER_FILE,
)  # without any of them, a folder is not a model's, and its files are not hashed

# arguments of ``load`` that a collection remembers: which values each may have, all of them harmless
SETTINGS: dict[str, Callable[[object], bool]] = {
    "precision": lambda value: value in get_args(Precision),
    "long": lambda value: value in get_args(LongPolicy),
    "truncate_dim": lambda value: value is None or _is_count(value),
    "readout": lambda value: _is_readout(value),
}


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """What a collection remembers of its model. ``digest`` is that of all that decides its vectors.

    ``name`` and ``settings`` are what :func:`twinvec.load` needs to load it again: of its arguments precision, long,
    truncate_dim and readout, and no other.
    """

    name: str
    digest: str
    width: int
    similarity: str = "cosine"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("name", self.name), ("digest", self.digest)):
            if not isinstance(value, str) or not value:
                raise InputError(f"The {name} of a model is {shown(value)}, not a text.")
        if not _is_count(self.width):
            raise InputError(f"The width of the model {self.name!r} is {shown(self.width)}.", hint="Give its number.")
        if not isinstance(self.similarity, str) or self.similarity not in METRICS:
            raise InputError(
                f"The model {self.name!r} compares by {self.similarity}, which a collection cannot search by.",
                hint=f"Use a model that compares by one of these: {', '.join(METRICS)}.",
            )

        _check_settings(self.settings)

    @property
    def metric(self) -> str:
        """What Lance calls the distance."""
        return METRICS[self.similarity]


def _check_settings(settings: object) -> None:
    if not isinstance(settings, Mapping):
        raise InputError(f"The settings of a model are {shown(settings)}, not a dict.")
    for name, value in settings.items():
        if name not in SETTINGS:
            raise InputError(
                f"The settings of a model have {shown(name)}, which a collection cannot set.",
                hint=f"It can set: {', '.join(SETTINGS)}. All else is for the caller to say.",
            )
        if not SETTINGS[name](value):
            raise InputError(f"The settings of a model have {name} = {shown(value)}, which is not one of its values.")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= WIDEST


def _is_readout(value: object) -> bool:
    """Whether it is "wk", names of poolings joined by "+", or settings of SBERT-WK as a dict."""
    if isinstance(value, str):
        return value == "wk" or all(name in POOLINGS for name in value.split("+"))
    try:
        return isinstance(value, dict) and bool(WKSettings(**value))
    except (TypeError, TwinvecError):
        return False


@dataclass(frozen=True, slots=True)
class CollectionModel:
    """What embeds the texts of a collection, and what the collection remembers of it."""

    record: ModelRecord
    embedder: Embedder = field(repr=False)

    def documents(self, texts: list[str]) -> Vectors:
        """Vectors to store, ``(n, width)``."""
        found = self.embedder.embed(texts, role="document")
        return checked_vectors(found, texts, width=self.record.width, source=self.record.name)

    def query(self, text: str) -> Vectors:
        """The vector to search by, ``(width,)``."""
        found = self.embedder.embed([text], role="query")
        vectors = checked_vectors(found, [text], width=self.record.width, source=self.record.name)
        return np.asarray(vectors[0])


def as_model(model: ModelLike | Embedder, arguments: Mapping[str, Any] | None = None) -> CollectionModel:
    """A model that the caller names or has made; ``arguments`` of :func:`twinvec.load` are the caller's, too."""
    embedder = as_embedder(model, arguments)
    if isinstance(embedder, ModelEmbedder):
        is_folder = Path(embedder.model).expanduser().is_dir()
        return CollectionModel(
            _record(embedder, stable_name(embedder.folder) if is_folder else embedder.model), embedder
        )
    return CollectionModel(_other_record(embedder), embedder)


def _other_record(embedder: Embedder, name: str | None = None) -> ModelRecord:
    """What to remember of an embedder that is not a sentence model; one that has a folder is opened by that again."""
    folder = getattr(embedder, "folder", None)
    if name is None:
        name = str(folder.absolute()) if isinstance(folder, Path) and embedder_kind(folder) else embedder.name
    return ModelRecord(name, embedder.identity, width_of(embedder), embedder.similarity)


def _record(embedder: ModelEmbedder, name: str) -> ModelRecord:
    encoder = embedder.encoder
    arguments = arguments_of(encoder)
    settings = {key: value for key, value in arguments.items() if key in SETTINGS}
    if isinstance(settings.get("readout"), WKSettings):
        settings["readout"] = asdict(settings["readout"])
    return ModelRecord(name, embedder.space, encoder.width, embedder.similarity, settings)


def given_model(
    record: ModelRecord, path: str, model: ModelLike | Embedder | None, arguments: Mapping[str, Any] | None
) -> CollectionModel | None:
    """The model that the caller of the collection at ``path`` asks for, loaded; None if the caller says nothing of it.

    Without ``model``, ``arguments`` of :func:`twinvec.load` change how the remembered one is run. A model is fetched
    only if the caller names it: the word of a collection is not enough.
    """
    if arguments and not isinstance(model, (str, PathLike, NoneType)):
        raise InputError("A model that is loaded takes no arguments.", hint="Give its name or folder with them.")
    if model is not None:
        return as_model(model, arguments)
    return remembered_model(record, path, arguments) if arguments else None


def remembered_model(record: ModelRecord, path: str, given: Mapping[str, Any] | None = None) -> CollectionModel:
    """Load the model that the collection at ``path`` names, if it is on this machine and of the content it says.

    The content is compared before any weights are read. ``given`` are arguments of :func:`twinvec.load` that the caller
    says, and go before those remembered.
    """
    folder = _folder_here(record, path)
    if embedder_kind(folder) is not None:
        baseline = as_embedder(folder, {**record.settings, **(given or {})})
        if (found := _other_record(baseline, record.name)) != record:
            raise another_model(path, record, record.name)
        return CollectionModel(found, baseline)
    embedder = ModelEmbedder(folder, {**record.settings, **(given or {})}).find()
    embedder.model = record.name
    own = read_model_folder(folder)
    if "readout" in record.settings:
        own = with_readout(own, ModelEmbedder(folder, record.settings).arguments["readout"])
    space = space_digest(embedder.content, readout_words(own), record.width)
    if space != record.digest or own.similarity != record.similarity:
        raise another_model(path, record, record.name)
    return CollectionModel(_record(embedder, record.name), embedder)


def _folder_here(record: ModelRecord, path: str) -> Path:
    """The folder of the model that a collection names; nothing is fetched."""
    name, folder = record.name, None
    try:
        if not name.startswith(NETWORK_PATHS):
            folder = find_model(name, offline=True)
    except (ModelNotFoundError, OSError, RuntimeError, ValueError):  # the last three for names that no file can have
        pass
    if folder is not None and any((folder / mark).is_file() for mark in MODEL_MARKS):
        return folder
    raise ModelNotFoundError(
        f"{path} was made with the model {name!r:.200}, which is not on this machine.",
        hint="It is not fetched on the word of a collection. If you trust the name, fetch it once with twinvec inspect "
        "or give it yourself: --model, or Collection.open(path, model=...). If it has moved, give its folder so.",
    )


def another_model(path: str, own: ModelRecord, given: str) -> CollectionError:
    """What to raise where a collection meets a model that is not its own."""
    problem = f"{path} was made with the model {own.name!r}, not with {given!r}."
    if own.name == given:
        problem = f"{path} was made with another model of the name {given!r}: its files or its settings differ."
    return CollectionError(
        problem,
        hint=f"Use that one, or embed all texts again: Collection.open(path).reindex(model={given!r}), or "
        f"twinvec index with --re-embed -m {quote(given)}.",
    )
