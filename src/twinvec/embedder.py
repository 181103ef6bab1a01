"""The Embedder protocol, sentence models behind it, and caching of vectors."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, overload

from twinvec.choices import DEFAULT_MODEL, SHIPPED, Role
from twinvec.encoder import Block, Encoder
from twinvec.errors import InputError, shown
from twinvec.explanation import Explanation, PairExplanation
from twinvec.files import whole_file
from twinvec.loading import load
from twinvec.model.folder import WK, ModelFolder, Pooling, read_model_folder
from twinvec.model.hub import find_model, shipped_folder
from twinvec.model.identity import (
    DECIDING,
    FileStates,
    deciding_settings,
    engine_versions,
    file_states,
    model_digest,
    model_files,
    refuse_settings,
    space_digest,
    vectors_digest,
)
from twinvec.token_rows import BLOCK_WARNINGS, better_models
from twinvec.types import Vectors
from twinvec.vector_store import VectorStore, embed_missing
from twinvec.vectors import checked_vectors
from twinvec.wk import WKSettings

__all__ = [
    "TEXTS_PER_CALL",
    "CachedEmbedder",
    "Embedder",
    "ModelEmbedder",
    "ModelLike",
    "arguments_of",
    "as_embedder",
    "embed_block",
    "embed_texts",
    "explain",
    "is_address",
    "readout_words",
    "stable_name",
    "width_of",
]

logger = logging.getLogger(__name__)

TEXTS_PER_CALL = 4096  # lost if the process is killed; enough to sort by length
FIND_ARGUMENTS = "revision", "offline", "trust_pickle"  # arguments of ``load`` that locate a model


class Embedder(Protocol):
    """Turns texts into vectors. Embedders with the same ``identity`` share cached vectors."""

    @property
    def name(self) -> str:
        """The name shown to users."""
        ...

    @property
    def identity(self) -> str:
        """A string that changes whenever the vectors could change."""
        ...

    @property
    def width(self) -> int | None:
        """Size of a vector; None if not yet known."""
        ...

    @property
    def similarity(self) -> str:
        """The measure for comparing its vectors: cosine, dot, euclidean or manhattan."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its settings as JSON, for reports and manifests."""
        ...

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, row ``i`` for text ``i``."""
        ...


ModelLike = str | os.PathLike[str] | Encoder


class ModelEmbedder:
    """A sentence model given by name or folder (found and loaded at first use), or a loaded encoder.

    ``arguments`` are those of :func:`twinvec.load`. ``prompt`` or ``prompt_name`` applies to every text, as in
    ``Encoder.encode``, whatever its role.

    >>> ModelEmbedder("twinvec-mini", {"precision": "int8"}).name
    'twinvec-mini (int8)'
    """

    def __init__(
        self,
        model: ModelLike = DEFAULT_MODEL,
        arguments: Mapping[str, Any] | None = None,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> None:
        self.prompts: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
        self._warned: set[str] = set()
        self._as_found: FileStates | None = None
        if isinstance(model, Encoder):
            self.folder = model.folder.path
            self.model = stable_name(self.folder)
            self.arguments = arguments_of(model)
            self._as_found = model.folder.as_opened
            self.encoder = model
            return
        if not isinstance(model, (str, os.PathLike)) or isinstance(os.fspath(model), bytes):
            raise InputError(
                f"The model is {shown(model)}, of type {type(model).__name__}.",
                hint="Pass a model name, a model folder, or an encoder from twinvec.load.",
            )
        self.arguments = dict(arguments or {})
        if isinstance(self.arguments.get("readout"), dict):  # from JSON
            self.arguments["readout"] = WKSettings(**self.arguments["readout"])
        self.model = os.fspath(model)
        self._source = self.model  # stays, even if ``model`` is renamed

    @cached_property
    def folder(self) -> Path:
        """The model's folder, located at first use; a hub model may be downloaded."""
        wanted = {name: self.arguments[name] for name in FIND_ARGUMENTS if name in self.arguments}
        folder = find_model(self._source, **wanted)
        self._as_found = file_states(model_files(folder))
        return folder

    def find(self) -> ModelEmbedder:
        """Locate the folder now, so that an unknown name fails before the first text; returns self."""
        _ = self.folder
        return self

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded at first use."""
        arguments = {name: value for name, value in self.arguments.items() if name != "revision"}
        encoder: Encoder = load(self.folder, **arguments)
        self._check_files()
        return encoder

    @property
    def name(self) -> str:
        """The model's name, with precision and readout if they are not the defaults."""
        readout = self.arguments.get("readout")
        words = [self.arguments.get("precision"), "wk" if isinstance(readout, WKSettings) else readout]
        details = ", ".join(word for word in words if word not in (None, DECIDING["precision"]))
        return f"{self.model} ({details})" if details else self.model

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that affect its vectors."""
        return {**deciding_settings(self.arguments), **self.prompts}

    @cached_property
    def content(self) -> str:
        """A digest of the model's files; raises an error if they changed after the model was opened."""
        digest = model_digest(self.folder)
        self._check_files()
        return digest

    @cached_property
    def identity(self) -> str:
        """A digest of the model's files and of the settings that affect its vectors."""
        return f"model-{vectors_digest(self.content, self.settings)}"

    @cached_property
    def space(self) -> str:
        """A digest of the vector space: vectors of embedders with the same space can be compared."""
        return space_digest(self.content, readout_words(self.encoder.folder), self.encoder.width)

    @property
    def width(self) -> int | None:
        """Size of a vector; None until the model is loaded."""
        return self.encoder.width if "encoder" in self.__dict__ else None

    @cached_property
    def similarity(self) -> str:
        """The similarity measure that the model was trained for."""
        return read_model_folder(self.folder).similarity

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``. Jobs call it often, so it warns of unknown texts only once."""
        encoder = self.encoder
        if "unknown" in self._warned:
            encoder = replace(encoder, settings=replace(encoder.settings, unknown="ignore"))
        elif encoder.settings.unknown == "warn" and encoder.coverage(texts).is_unknown.any():
            self._warned.add("unknown")
        if role == "text" or any(self.prompts.values()):
            return encoder.encode(texts, **self.prompts, progress=False)
        return (encoder.encode_query if role == "query" else encoder.encode_document)(texts)

    def embed_block(self, texts: Sequence[str]) -> Block:
        """Vectors whose bits depend on these texts alone, with counts of truncated and unknown texts; warns once."""
        block = self.encoder.encode_block(texts, **self.prompts)
        for policy, count in (("long", block.n_cut), ("unknown", block.n_unknown)):
            if count and policy not in self._warned and self.arguments.get(policy, "warn") == "warn":
                models = better_models(filter(None, self.encoder.coverage(texts).scripts))
                logger.warning(BLOCK_WARNINGS[policy], self.encoder.max_tokens if policy == "long" else models)
                self._warned.add(policy)
        return block

    def _check_files(self) -> None:
        if self._as_found is not None:
            self._as_found.check()


def stable_name(folder: Path) -> str:
    """How to load a folder again: the name for a shipped model, whose path may change, else the absolute path."""
    if folder.name in SHIPPED and shipped_folder(folder.name) == folder:
        return folder.name
    return str(folder.absolute())


def arguments_of(encoder: Encoder) -> dict[str, Any]:
    """The arguments of :func:`twinvec.load` that reproduce an encoder's vectors and warnings."""
    is_usual = encoder.settings.unknown == "warn"
    names = ("precision", "device", "runtime", "deterministic", "long", *(() if is_usual else ("unknown",)))
    chosen: dict[str, Any] = {name: getattr(encoder.settings, name) for name in names}
    own = read_model_folder(encoder.folder.path)
    if encoder.truncate_dim != own.truncate_dim:
        chosen["truncate_dim"] = encoder.truncate_dim
    if encoder.folder.has_layers and readout_words(encoder.folder) != readout_words(own):
        readout = encoder.folder.readout
        chosen["readout"] = readout.settings if isinstance(readout, WK) else readout_words(encoder.folder)
    return chosen


def readout_words(folder: ModelFolder) -> str | dict[str, Any]:
    """A model's readout as JSON: names of poolings, or SBERT-WK settings."""
    if not folder.has_layers:
        return "static" if folder.is_static else "use"
    match folder.readout:
        case Pooling(modes=modes):
            return "+".join(modes)
        case WK(settings=settings):
            return asdict(settings)


def as_embedder(
    model: ModelLike | Embedder,
    arguments: Mapping[str, Any] | None = None,
    *,
    prompt: str | None = None,
    prompt_name: str | None = None,
) -> Embedder:
    """An embedder from a model name, folder, encoder or address; an Embedder is returned unchanged.

    The folder may also be a baseline, such as word vectors. For it and for the address of a server, such as
    http://127.0.0.1:8080, engine settings and prompts are an error.

    >>> as_embedder("twinvec-mini").embed(["a cat", "a kitten"]).shape
    (2, 384)
    """
    if isinstance(model, (str, os.PathLike)) and (other := _other(os.fspath(model))) is not None:
        kind = "a server" if is_address(model) else other.name
        refuse_settings({**(arguments or {}), "prompt": prompt, "prompt_name": prompt_name}, kind)
        return other
    if isinstance(model, (str, os.PathLike, Encoder)):
        return ModelEmbedder(model, arguments, prompt=prompt, prompt_name=prompt_name).find()
    if not callable(getattr(model, "embed", None)):
        raise InputError(
            f"The model is {shown(model)}, of type {type(model).__name__}.",
            hint="Pass a model name, a model folder, the address of a server, an encoder from twinvec.load, or an "
            "Embedder.",
        )
    return model


def is_address(model: object) -> bool:
    """Whether a model is given by the address of a server.

    >>> is_address("http://127.0.0.1:8080"), is_address("twinvec-mini")
    (True, False)
    """
    return isinstance(model, str) and model.startswith(("http://", "https://"))


def _other(name: str | bytes) -> Embedder | None:
    """Open a server or a baseline. Their modules are on higher levels, so they are imported only here."""
    embedder: Embedder | None = None
    if is_address(name):
        embedder = import_module("twinvec.remote").Client(name)
    elif isinstance(name, str):
        embedder = import_module("twinvec.baselines").open_baseline(name)
    return embedder


def embed_block(embedder: Embedder, texts: Sequence[str]) -> Block:
    """Embed texts as float32, with the counts of truncated and unknown texts if the embedder has ``embed_block``."""
    own = getattr(embedder, "embed_block", None)
    return Block(embedder.embed(texts), 0, 0) if own is None else own(texts)


def embed_texts(embedder: Embedder, texts: Sequence[str], *, role: Role = "text") -> Vectors:
    """Vectors of the texts, ``(len(texts), width)``, checked; a sentence model shows a progress bar on long work."""
    if not isinstance(embedder, ModelEmbedder):
        vectors = embedder.embed(texts, role=role)
        return checked_vectors(vectors, texts, width=embedder.width, source=embedder.name)
    if role == "text":
        return embedder.encoder.encode(texts, **embedder.prompts)
    return embedder.embed(texts, role=role)


def width_of(embedder: Embedder) -> int:
    """The width of an embedder's vectors; embeds one text if it is unknown."""
    return embedder.width or int(embedder.embed(["width"]).shape[1])


class CachedEmbedder:
    """Embeds every distinct text once, across runs.

    ``folder`` is the cache folder, with one store per identity; None keeps vectors in memory. ``at_once`` is the
    largest number of texts per call of the embedder; None means no limit.
    """

    def __init__(
        self, embedder: Embedder, folder: Path | None, *, role: Role = "text", at_once: int | None = TEXTS_PER_CALL
    ) -> None:
        self.embedder = embedder
        self.n_embedded = 0
        self.store = VectorStore(None if folder is None else _store_folder(embedder, folder, role))
        self._role, self._at_once = role, at_once

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, row ``i`` for text ``i``."""
        self.prepare(texts)
        return self.store.of(texts)

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts that are not cached yet."""
        if isinstance(texts, str):
            raise InputError("Expected a list of texts, got one text.", hint="Put it in a list.")
        self.n_embedded += embed_missing(
            self.store,
            texts,
            lambda part: self.embedder.embed(part, role=self._role),
            source=self.embedder.name,
            at_once=self._at_once,
            label=f"embedding by {Path(self.embedder.name).name}",
        )


def _store_folder(embedder: Embedder, folder: Path, role: Role) -> Path:
    """The folder of an embedder's store, with an ``about.json`` that describes it.

    Other engine versions may give slightly different vectors, so each has its own store.
    """
    about: dict[str, Any] = {"name": embedder.name, "identity": embedder.identity, "role": role}
    if isinstance(embedder, ModelEmbedder):
        about["versions"] = engine_versions()
    key = json.dumps({name: value for name, value in about.items() if name != "name"}, sort_keys=True)
    store = folder / hashlib.sha256(key.encode()).hexdigest()[:32]
    path = store / "about.json"
    try:
        if not path.is_file():
            store.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                file.write(f"{json.dumps(about, indent=2)}\n".encode())
    except OSError as error:
        raise InputError(
            f"The cache folder {folder} cannot be written: {error.strerror or error}.",
            hint="Choose another with --cache, or turn caching off with --no-cache.",
        ) from error
    return store


@overload
def explain(text: str, other: None = None, model: ModelLike | Embedder = DEFAULT_MODEL) -> Explanation: ...


@overload
def explain(text: str, other: str, model: ModelLike | Embedder = DEFAULT_MODEL) -> PairExplanation: ...


def explain(
    text: str, other: str | None = None, model: ModelLike | Embedder = DEFAULT_MODEL
) -> Explanation | PairExplanation:
    """Explain a text's vector token by token, or the cosine of two texts.

    Exact for static models and models with mean pooling or SBERT-WK; others raise InputError. See
    ``Encoder.explain`` and ``Encoder.explain_pair``.

    >>> pair = explain("A cat sits.", "A kitten rests.")
    >>> pair.contributions.shape == (len(pair.left.tokens), len(pair.right.tokens))
    True
    """
    embedder = as_embedder(model)
    if not isinstance(embedder, ModelEmbedder):
        raise InputError(
            f"{embedder.name} is not a sentence model, so its vectors cannot be explained.",
            hint="Pass the name or folder of a sentence model.",
        )
    if other is None:
        return embedder.encoder.explain(text, **embedder.prompts)
    return embedder.encoder.explain_pair(text, other, **embedder.prompts)
