"""A model as a collection sees it: what it is, by its content, and how it embeds."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.encoder import Encoder
from twinvec.errors import InputError
from twinvec.loading import load
from twinvec.model_folder import WK, ModelFolder, Pooling, read_model_folder
from twinvec.model_identity import model_digest
from twinvec.search.rows import checked_rows
from twinvec.shipped import SHIPPED, shipped_folder
from twinvec.types import Array, Vectors
from twinvec.wk import WKSettings

__all__ = ["Embedder", "ModelRecord", "as_embedder", "load_embedder"]

METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}  # ours to Lance's


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """What a collection remembers of its model. ``digest`` is that of all that decides its vectors.

    ``name`` and ``settings`` are what :func:`twinvec.load` needs to load it again.
    """

    name: str
    digest: str
    width: int
    similarity: str = "cosine"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.similarity not in METRICS:
            raise InputError(
                f"The model {self.name!r} compares by {self.similarity}, which a collection cannot search by.",
                hint=f"Use a model that compares by one of these: {', '.join(METRICS)}.",
            )

    @property
    def metric(self) -> str:
        """What Lance calls the distance."""
        return METRICS[self.similarity]


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
        rows = checked_rows(found, f"the vectors of {self.record.name}").astype(np.float32, copy=False)
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
    return embedder_of(model) if isinstance(model, Encoder) else load_embedder(model, {})


def load_embedder(model: str | os.PathLike[str], settings: Mapping[str, Any]) -> Embedder:
    """Load a model with arguments of :func:`twinvec.load`; settings of SBERT-WK may be a dict."""
    chosen = dict(settings)
    if isinstance(chosen.get("readout"), dict):
        chosen["readout"] = WKSettings(**chosen["readout"])
    is_folder = Path(model).expanduser().is_dir()
    return embedder_of(load(model, **chosen), name=None if is_folder else str(model))


def embedder_of(encoder: Encoder, name: str | None = None) -> Embedder:
    """An encoder as an embedder, called by ``name``, or by its folder."""
    record = ModelRecord(
        name=name or _name(encoder.folder.path),
        digest=_digest(encoder),
        width=encoder.width,
        similarity=encoder.folder.similarity,
        settings=_settings(encoder),
    )
    return Embedder(record, encoder.encode_document, encoder.encode_query)


def _name(path: Path) -> str:
    """How to load a folder again: by name if it is of the package, which may move with its next version."""
    if path.name in SHIPPED and shipped_folder(path.name) == path:
        return path.name
    return str(path.absolute())


def _digest(encoder: Encoder) -> str:
    """Of the model's files, readout and width. Precision and versions are left out: they move vectors little."""
    folder = encoder.folder
    parts = {"files": model_digest(folder.path), "readout": _readout(folder), "width": encoder.width}
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
