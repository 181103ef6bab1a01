"""A model as a collection sees it: what it is, by its content, and how it embeds.

A collection may have been made by others. What it says of its model is checked here: it can name one that is on this
machine and say how to read it out, but it cannot have anything fetched, or a pickle read. The caller can.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, get_args

import numpy as np

from twinvec.choices import SHIPPED, LongPolicy, Precision
from twinvec.encoder import Encoder
from twinvec.errors import CollectionError, InputError, ModelNotFoundError, TwinvecError, shown
from twinvec.loading import load
from twinvec.model.folder import POOLING_MODES, WK, ModelFolder, Pooling, read_model_folder, with_readout
from twinvec.model.hub import find_model, shipped_folder
from twinvec.model.identity import model_digest
from twinvec.search.measures import checked_rows
from twinvec.types import Array, Vectors
from twinvec.wk import WKSettings

__all__ = ["Embedder", "ModelRecord", "another_model", "as_embedder", "load_embedder", "load_remembered"]

METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}  # ours to Lance's
WIDEST = 2**31 - 1
NETWORK_PATHS = ("//", "\\\\")  # where Windows looks on other machines
MODEL_MARKS = ("modules.json", "config.json")  # without either, a folder is not a model's, and its files are not hashed

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
        return value == "wk" or all(name in POOLING_MODES for name in value.split("+"))
    try:
        return isinstance(value, dict) and bool(WKSettings(**value))
    except (TypeError, TwinvecError):
        return False


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model ready to embed texts that answer and texts that ask: both take ``n`` texts and give ``(n, width)``."""

    record: ModelRecord
    documents: Callable[[list[str]], Array] = field(repr=False)
    queries: Callable[[list[str]], Array] = field(repr=False)

    def embed_documents(self, texts: list[str]) -> Vectors:
        """Vectors to store, ``(n, width)``."""
        if not texts:
            return np.empty((0, self.record.width), dtype=np.float32)
        return self._checked(self.documents(texts), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """The vector to search by, ``(width,)``."""
        return np.asarray(self._checked(self.queries([text]), 1)[0])

    def _checked(self, found: Array, n: int) -> Vectors:
        width = self.record.width
        what = f"the vectors of {self.record.name}"
        try:
            with np.errstate(over="ignore"):
                rows = checked_rows(found, what).astype(np.float32, copy=False)
        except (TypeError, ValueError) as error:
            if isinstance(error, TwinvecError):
                raise
            raise InputError(f"Numpy cannot read {what}: {error}.", hint="Return an array (n, width).") from error
        checked_rows(rows, what)  # once more: what is too large for float32 is infinite there
        if rows.shape != (n, width):
            raise InputError(
                f"The model {self.record.name!r} gave vectors of shape {rows.shape} for {n} texts.",
                hint=f"This collection holds vectors of width {width}.",
            )
        return rows


def as_embedder(model: str | os.PathLike[str] | Encoder | Embedder) -> Embedder:
    """Load a model by its name or folder, or take one that is loaded."""
    if isinstance(model, Embedder):
        return model
    if isinstance(model, Encoder):
        return embedder_of(model)
    if not isinstance(model, (str, os.PathLike)) or isinstance(os.fspath(model), bytes):
        raise InputError(
            f"The model is {shown(model)}, of type {type(model).__name__}.",
            hint="Give the name of a model, its folder, or an encoder that twinvec.load returned.",
        )
    return load_embedder(model, {})


def load_embedder(model: str | os.PathLike[str], settings: Mapping[str, Any]) -> Embedder:
    """Load a model that the caller names, with the caller's arguments of :func:`twinvec.load`."""
    is_folder = Path(model).expanduser().is_dir()
    return embedder_of(load(model, **_arguments(settings)), name=None if is_folder else str(model))


def load_remembered(record: ModelRecord, place: str, given: Mapping[str, Any] | None = None) -> Embedder:
    """Load the model that the collection at ``place`` names, if it is on this machine and of the content it says.

    The content is compared before any weights are read. ``given`` are arguments of :func:`twinvec.load` that the caller
    says, and go before those remembered.
    """
    folder = _folder_here(record, place)
    files = model_digest(folder)
    own = read_model_folder(folder)
    if "readout" in record.settings:
        own = with_readout(own, _arguments(record.settings)["readout"])
    if _digest(files, own, record.width) != record.digest or own.similarity != record.similarity:
        raise another_model(place, record, record.name)
    chosen = {**record.settings, **(given or {})}
    return embedder_of(load(folder, **_arguments(chosen)), name=record.name, files=files)


def _folder_here(record: ModelRecord, place: str) -> Path:
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
        f"{place} was made with the model {name!r:.200}, which is not on this machine.",
        hint="It is not fetched on the word of a collection. If you trust the name, fetch it once with twinvec inspect "
        "or give it yourself: --model, or Collection.open(path, model=...). If it has moved, give its folder so.",
    )


def _arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of :func:`twinvec.load`; settings of SBERT-WK may be a dict."""
    chosen = dict(settings)
    if isinstance(chosen.get("readout"), dict):
        chosen["readout"] = WKSettings(**chosen["readout"])
    return chosen


def another_model(place: str, own: ModelRecord, given: str) -> CollectionError:
    """What to raise where a collection meets a model that is not its own."""
    problem = f"{place} was made with the model {own.name!r}, not with {given!r}."
    if own.name == given:
        problem = f"{place} was made with another model of the name {given!r}: its files or its settings differ."
    return CollectionError(
        problem,
        hint=f"Use that one, or embed all texts again: Collection.open(path).reindex(model={given!r}), or "
        f"twinvec index with --re-embed -m {quote(given)}.",
    )


def embedder_of(encoder: Encoder, name: str | None = None, *, files: str | None = None) -> Embedder:
    """An encoder as an embedder, called by ``name``, or by its folder. ``files`` is their digest, if it is known."""
    folder = encoder.folder
    record = ModelRecord(
        name=name or _name(folder.path),
        digest=_digest(files or model_digest(folder.path), folder, encoder.width),
        width=encoder.width,
        similarity=folder.similarity,
        settings=_settings(encoder),
    )
    return Embedder(record, encoder.encode_document, encoder.encode_query)


def _name(path: Path) -> str:
    """How to load a folder again: by name if it is of the package, which may move with its next version."""
    if path.name in SHIPPED and shipped_folder(path.name) == path:
        return path.name
    return str(path.absolute())


def _digest(files: str, folder: ModelFolder, width: int) -> str:
    """Of the model's files, readout and width. Precision and versions are left out: they move vectors little."""
    parts = {"files": files, "readout": _readout(folder), "width": width}
    folder.check_unchanged()  # the digest must be of what was loaded
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _settings(encoder: Encoder) -> dict[str, Any]:
    """The arguments of ``load`` that decide vectors, as far as they are not the usual ones."""
    folder = encoder.folder
    chosen: dict[str, Any] = {"precision": encoder.settings.precision, "long": encoder.settings.long}
    own = read_model_folder(folder.path)
    if encoder.truncate_dim != own.truncate_dim:
        chosen["truncate_dim"] = encoder.truncate_dim
    if _readout(folder) != _readout(own):
        chosen["readout"] = _readout(folder)
    return chosen


def _readout(folder: ModelFolder) -> str | dict[str, Any]:
    """The readout in words that JSON has: names of poolings, or the settings of SBERT-WK."""
    if folder.is_static:
        return "static"
    match folder.readout:
        case Pooling(modes=modes):
            return "+".join(modes)
        case WK(settings=settings):
            return asdict(settings)
